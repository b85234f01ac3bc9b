"""The app, which connects the screens, the session that reads, and the signals."""

import asyncio
import errno
import threading
from contextlib import suppress
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.drivers.linux_driver import LinuxDriver

from rwq_cli.top.screens import LiveScreen, QueuesScreen
from rwq_cli.top.session import Session
from rwq_cli.top.terminal import TerminalGuard


class _Driver(LinuxDriver):
    """Drops bytes that are not UTF-8: they are no keys; and notices the end of a stop."""

    def _run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            with suppress(UnicodeDecodeError):
                return self.run_input_thread()

    def _sigcont_application(self, *_: object) -> None:
        if self._key_thread is not None and self._key_thread.is_alive():
            # Stopped by SIGSTOP. If started twice, two threads read keys, and one does so for ever.
            self.suspend_application_mode()
        super()._sigcont_application()
        assert isinstance(self._app, TopApp)
        self._app.session.resume()


class TopApp(App[None]):
    """`rwq top`, on a terminal that `guard` restores; `failure` is the error that ended it."""

    ENABLE_COMMAND_PALETTE = False
    # The terminal's own colours, whatever its theme.
    CSS = """
    * { scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black; }
    Screen { overflow: hidden; }
    Static { text-wrap: nowrap; text-overflow: ellipsis; }
    .wrapped, #question, HelpScreen Static { text-wrap: wrap; text-overflow: fold; }
    Listing { height: 1fr; }
    VerticalScroll { scrollbar-size-vertical: 1; }
    Input, Input:focus { border: none; height: 1; padding: 0; }
    CommandScreen { background: transparent; align: left bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, session: Session, guard: TerminalGuard | None = None) -> None:
        super().__init__(_Driver, ansi_color=True)
        self.session = session
        self.failure: BaseException | None = None
        self._guard = guard
        # Textual's threads begin before `on_mount`.
        threading.excepthook = self._end_with

    def on_mount(self) -> None:
        if self._guard is not None:
            # A signal handler may run between any two steps of the loop.
            call = asyncio.get_running_loop().call_soon_threadsafe
            self._guard.leave = lambda: call(self.exit)
        self.push_screen(QueuesScreen(self.session))
        self.session.start(lambda: self.call_later(self._redraw))
        self.set_interval(1.0, self._redraw)

    def on_unmount(self) -> None:
        threading.excepthook = threading.__excepthook__
        self.session.stop()

    def _end_with(self, failed: threading.ExceptHookArgs) -> None:
        """End the app with the error of a thread."""
        error = failed.exc_value
        # The terminal is gone: SIGHUP comes, and says so.
        if not (isinstance(error, OSError) and error.errno == errno.EIO):
            self.call_later(self._handle_exception, error)

    def _redraw(self) -> None:
        if self.screen_stack and isinstance(screen := self.screen, LiveScreen):
            screen.redraw()

    def _fatal_error(self) -> None:
        """End without Textual's traceback: it prints variables, and one may hold a password."""
        self.failure = self._exception
        self._close_messages_no_wait()

    def action_freeze(self) -> None:
        self.session.is_frozen = not self.session.is_frozen
        self.session.read_soon()
        self._redraw()

    def action_interrupt(self) -> None:
        self.failure = KeyboardInterrupt()
        self.exit()
