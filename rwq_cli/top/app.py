"""The app, which connects the screens, the session that reads, and the signals."""

import asyncio
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from rwq_cli.top.screens import LiveScreen, QueuesScreen
from rwq_cli.top.session import Session
from rwq_cli.top.terminal import TerminalGuard


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
    Footer, FooterKey, FooterKey .footer-key--key, FooterKey .footer-key--description {
        color: ansi_default; background: ansi_default; text-style: dim;
    }
    FooterKey .footer-key--key { text-style: bold; }
    CommandScreen { background: transparent; align: left bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, session: Session, guard: TerminalGuard | None = None) -> None:
        super().__init__(ansi_color=True)
        self.session = session
        self.failure: BaseException | None = None
        self._guard = guard

    def on_mount(self) -> None:
        if self._guard is not None:
            # A signal handler may run between any two steps of the loop.
            call = asyncio.get_running_loop().call_soon_threadsafe
            self._guard.leave = lambda: call(self.exit)
            note = self._guard.note_drawn
            self.app_suspend_signal.subscribe(self, lambda _: note(is_drawn=False), immediate=True)
            self.app_resume_signal.subscribe(self, lambda _: note(is_drawn=True), immediate=True)
        self.push_screen(QueuesScreen(self.session))
        self.session.start(
            lambda: self.call_later(self._redraw),
            lambda error: self.call_later(self._handle_exception, error),
        )
        self.set_interval(1.0, self._redraw)

    def on_unmount(self) -> None:
        self.session.stop()

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
