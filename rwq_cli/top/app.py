"""The app: it reads at each tick, and shows what it has read."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar, TypeVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.drivers.linux_driver import LinuxDriver

from rwq_cli.core.errors import ConnectionLost, RwqError, ServerError, Unreachable
from rwq_cli.core.inspect.queue_watch import Overview, interval_s
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.screen import Piece
from rwq_cli.top.running import Action
from rwq_cli.top.screens import HelpScreen, LiveScreen, QueuesScreen
from rwq_cli.top.session import Session
from rwq_cli.top.terminal import TerminalGuard

T = TypeVar("T")

# How often keys are scanned for new queues, seconds; less often if that takes long.
SCAN_EVERY_S = 30.0
_SCAN_SHARE = 10
# A read that takes longer is mentioned.
_SLOW_READ_S = 2.0
# Counts of abandoned items that are older are mentioned; in ticks.
_OLD_TICKS = 3
_MESSAGE_S = 5.0


class _Driver(LinuxDriver):
    """Textual's driver, which notes when it has the terminal."""

    def start_application_mode(self) -> None:
        """Begin to draw."""
        self._note_drawn(is_drawn=True)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """End drawing, or pause it while others have the terminal."""
        super().close()
        self._note_drawn(is_drawn=False)

    def _note_drawn(self, *, is_drawn: bool) -> None:
        assert isinstance(self._app, TopApp)
        if self._app.guard is not None:
            self._app.guard.note_drawn(is_drawn=is_drawn)


class TopApp(App[None]):
    """`rwq top`.

    Args:
        session: What it looks at.
        guard: Restores the terminal; None if it draws on none.

    Attributes:
        guard: See above.
        overview: What is known of all queues.
        failure: The error that ended it; None for none.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "rwq top"
    CSS = """
    * { scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black; }
    Screen { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
    Input, Input:focus {
        border: none; height: 1; padding: 0; background: ansi_default; color: ansi_default;
    }
    HelpScreen { background: ansi_default; }
    CommandScreen { background: transparent; align: left bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("space", "freeze", show=False),
        Binding("question_mark", "help", show=False),
    ]

    def __init__(self, session: Session, guard: TerminalGuard | None = None) -> None:
        super().__init__(_Driver, ansi_color=True)
        self._session = session
        self.guard = guard
        self.overview: Overview = session.first
        self.failure: BaseException | None = None
        self._is_frozen = self._is_leaving = False
        self._trouble: RwqError | None = None
        self._trouble_since_s = 0.0
        self._reading_since_s: float | None = None
        self._message: tuple[str, float] | None = None
        self._soon = asyncio.Event()
        self._found: list[bytes] | None = None
        self._every_s = session.every_s
        # Reads go one after the other, a scan beside them.
        self._reader = ThreadPoolExecutor(1, "rwq-top-read")
        self._scanner = ThreadPoolExecutor(1, "rwq-top-scan")
        self._tasks: list[asyncio.Task[None]] = []
        self._own_loop: asyncio.AbstractEventLoop | None = None

    def on_mount(self) -> None:
        """Show the queues, and begin to read."""
        self._own_loop = asyncio.get_running_loop()
        self.push_screen(QueuesScreen(self._session))
        self._begin(self._tick_forever())
        if self._session.find is not None:
            self._begin(self._scan_forever())
        self.set_interval(1.0, self._redraw)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_end)
        self._tasks.append(task)

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._handle_exception(error)  # type: ignore[arg-type]

    def on_unmount(self) -> None:
        """Stop reading; a reply that is still outstanding is not waited for."""
        self._stop()
        for executor in (self._reader, self._scanner):
            executor.shutdown(wait=False, cancel_futures=True)

    def _stop(self) -> None:
        """Stop reading and drawing: the screens are about to be removed."""
        self._is_leaving = True
        for task in self._tasks:
            task.cancel()

    def _leave(self) -> None:
        self._stop()
        self.exit()

    def _fatal_error(self) -> None:
        """End without Textual's traceback: it prints variables, and one may hold a password."""
        self.failure = self._exception
        self._close_messages_no_wait()

    @property
    def _live(self) -> LiveScreen[Any] | None:
        """The screen that shows something live; None if it is covered."""
        screens = () if self._is_leaving else self.screen_stack
        screen = screens[-1] if screens else None
        return screen if isinstance(screen, LiveScreen) else None

    def _redraw(self) -> None:
        if (screen := self._live) is not None:
            screen.redraw()

    async def _tick_forever(self) -> None:
        while True:
            if not self._is_frozen or (self._live is not None and self._live.data is None):
                await self._tick()
            # Before Python 3.12, wait_for loses a cancellation that comes as the wait ends.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._soon.wait()
            self._soon.clear()

    async def _tick(self) -> None:
        screen, was_frozen = self._live, self._is_frozen
        wants_more = screen is not None and monotonic() >= screen.next_read_s
        self._reading_since_s = monotonic()
        try:
            if not was_frozen:
                overview = await self._in_thread(self._look)
                self._every_s = interval_s(self._session.every_s, overview.call_s)
                if not self._is_frozen:
                    self.overview = overview
            if screen is not None and wants_more:
                started_s = monotonic()
                data = await self._in_thread(screen.read)
                if was_frozen or not self._is_frozen or screen.data is None:
                    screen.data = data
                took_s = monotonic() - started_s
                screen.next_read_s = monotonic() + interval_s(0, took_s)
        except RwqError as error:
            if self._trouble is None:
                self._trouble_since_s = monotonic()
            self._trouble = error
        else:
            self._trouble = None
        self._reading_since_s = None
        self._redraw()

    async def _in_thread(self, read: Callable[[], T]) -> T:
        """What a function reads while nothing else uses the connection."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, read)

    def _look(self) -> Overview:
        if self._found is not None:
            self._session.watch.watch(self._found)
            self._found = None
        return self._session.watch.tick()

    async def _scan_forever(self) -> None:
        assert self._session.find is not None
        loop = asyncio.get_running_loop()
        took_s = 0.0
        while True:
            await asyncio.sleep(max(SCAN_EVERY_S, _SCAN_SHARE * took_s))
            started_s = monotonic()
            with suppress(ServerError):
                if not self._is_frozen:
                    self._found = list(
                        await loop.run_in_executor(self._scanner, self._session.find)
                    )
            took_s = monotonic() - started_s

    def read_soon(self) -> None:
        """Read again now."""
        if (screen := self._live) is not None:
            screen.next_read_s = 0.0
        self._soon.set()

    def show_message(self, text: str) -> None:
        """Show a message for a few seconds."""
        self.note(text)
        self._redraw()

    def note(self, text: str) -> None:
        """Like `show_message`, from any thread: it is drawn within a second."""
        self._message = text, monotonic()

    def notices(self) -> list[Piece]:
        """The messages above the keys, the most important first."""
        now_s = monotonic()
        parts: list[Piece] = []
        if self._is_frozen:
            parts.append(("FROZEN: space resumes", "bold reverse"))
        if self._message is not None and now_s - self._message[1] < _MESSAGE_S:
            parts.append((escaped_text(self._message[0]), "bold"))
        if self._trouble is not None:
            message = escaped_text(self._trouble.message)
            if isinstance(self._trouble, Unreachable | ConnectionLost):
                lost = human.duration(int(now_s - self._trouble_since_s))
                message = f"no answer for {lost}, trying again: {message}"
            parts.append((message, "bold red"))
        elif self._reading_since_s is not None and now_s - self._reading_since_s > _SLOW_READ_S:
            waited = human.duration(int(now_s - self._reading_since_s))
            parts.append((f"the server has not answered for {waited}", "bold red"))
        if self._every_s > self._session.every_s:
            took = human.duration(round(self.overview.call_s, 1))
            every = human.duration(round(self._every_s, 1))
            parts.append((f"slow server ({took} a call): read every {every}", "yellow"))
        if self.overview.left_out:
            left_out = escaped_text(self.overview.left_out[0].message)
            more = len(self.overview.left_out) - 1
            parts.append((f"skipped: {left_out}{f', and {more} more' if more else ''}", "yellow"))
        age_s = self.overview.abandoned_age_s
        if age_s > _OLD_TICKS * self._every_s:
            parts.append((f"ABANDONED is up to {human.duration(int(age_s))} old", "yellow"))
        parts.append((f"every {human.duration(self._session.every_s)}", None))
        return parts

    def run_command(self, action: Action, options: Sequence[str]) -> None:
        """Run a command on the terminal, and return."""
        with self.suspend():
            self._session.run(action, options)
        self.read_soon()

    def action_freeze(self) -> None:
        """Stop, or go on."""
        self._is_frozen = not self._is_frozen
        if not self._is_frozen:
            self.read_soon()
        self._redraw()

    def action_help(self) -> None:
        """Show the keys."""
        if self._live is not None:
            self.push_screen(HelpScreen(self._session))

    def action_leave(self) -> None:
        """Leave."""
        self._leave()

    def leave_on_signal(self) -> None:
        """Leave; for a signal's handler, which runs between any two steps."""
        if self._own_loop is not None:
            self._own_loop.call_soon_threadsafe(self._leave)

    def action_interrupt(self) -> None:
        """Leave as any command does on Ctrl-C."""
        self.failure = KeyboardInterrupt()
        self._leave()
