"""`--watch`: computes and shows the results of a command repeatedly."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.options import Duration
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import ServerError

# After this long without an answer, what is shown is marked as old; later if answers are slow.
OLD_AFTER_S = 1.0

if TYPE_CHECKING:
    from rwq_cli.core.handle import Queue
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.service.supervision import Rounds
    from rwq_cli.views.counts import Tick


def show_repeatedly(
    settings: Settings,
    every: Duration | None,
    connection: "Connection",
    show: "Callable[[Tick | None], object]",
    rated: "Callable[[], Iterable[Queue]] | None" = None,
) -> None:
    """Show the results of a command that has `--watch`: once, or until it is stopped."""
    # `rated` returns the queues whose rates are shown, too; None if records are not queues.
    if every is None:
        show(None)
        return
    settings.check_endless("--watch")
    from rwq_cli.core.clock import Clock, unix_ms
    from rwq_cli.core.inspect.rates import RateMeter
    from rwq_cli.service.supervision import Rounds
    from rwq_cli.views.counts import Tick

    # Progress would be drawn over the results.
    settings.end_progress()
    environment = settings.environment
    settings.out.continue_until_end()
    is_live = environment.stdout_is_terminal and settings.output.is_table
    is_live &= environment.variables.get("TERM") != "dumb"

    def note(line: str) -> None:
        # A live view has it below the results.
        if not is_live:
            environment.error(f"rwq: {line}")

    meter = RateMeter()

    def show_tick() -> None:
        rates = {} if rated is None else meter.read(rated())
        # The rates are since the last one.
        show(Tick(unix_ms(connection.call("TIME")), rates))

    rounds = Rounds(every, Clock(), note=note, is_exact=True)
    with ending_on_terminate(is_redrawn=is_live):
        if is_live:
            _redraw(settings, rounds, show_tick, every)
        for _ in rounds:
            try:
                show_tick()
            except ServerError as error:
                rounds.failed(error)
            else:
                if settings.output.is_table:
                    environment.stdout.write(b"\n")
            environment.stdout.flush()


def _redraw(
    settings: Settings, rounds: "Rounds", show: Callable[[], None], every: Duration
) -> None:
    import signal
    from threading import Event, Lock, Thread

    from rwq_cli.output import human
    from rwq_cli.output.console import LiveFrames, capture_frame
    from rwq_cli.output.escape import escaped_text

    frame, line, asked_s, usual_s = "", "", float("inf"), 0.0
    frames = LiveFrames(settings.environment, colour=settings.colour)
    drawing, over = Lock(), Event()
    signal.signal(signal.SIGCONT, lambda *_: frames.resume())

    def mark_old() -> None:
        # The other thread waits for an answer meanwhile.
        while not over.wait(OLD_AFTER_S):
            with drawing:
                silent_s = time.monotonic() - asked_s
                if frame and silent_s > max(OLD_AFTER_S, 2 * usual_s):
                    silence = f"OLD: no answer for {human.duration(int(silent_s))}"
                    frames.draw(frame, f"{line}: {silence}", "bold red")

    Thread(target=mark_old, name="marks what is old", daemon=True).start()
    try:
        for _ in rounds:
            asked_s, style = time.monotonic(), "dim"
            try:
                with capture_frame(settings.environment) as written:
                    show()
                next_frame = written.getvalue().decode()
                usual_s = time.monotonic() - asked_s
                line = now = time.strftime(f"%H:%M:%S, every {every}")
            except ServerError as error:
                rounds.failed(error)
                next_frame, style = frame, "bold red"
                now = f"{line}: OLD: {escaped_text(error.message)}" if frame else error.message
            with drawing:
                asked_s, frame = float("inf"), next_frame
                frames.draw(frame, now, style)
    finally:
        over.set()
        frames.end()
