"""`--watch`: a command's report, made and written again and again."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.options import Duration
from rwq_cli.cli.settings import Settings

if TYPE_CHECKING:
    from rwq_cli.core.handle import Queue
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.output.report import Records, Report


def watched(
    settings: Settings,
    every: Duration | None,
    connection: "Connection",
    make: "Callable[[], Records[Any]]",
    rated: "Callable[[], Iterable[Queue]] | None" = None,
) -> "Report":
    """The report of a command that has `--watch`.

    Args:
        settings: The settings.
        every: The time between two reports; None for one report.
        connection: The server.
        make: Makes one report.
        rated: Returns the queues whose rates are shown, too; None if records are not queues.

    Raises:
        InvalidArgument: The output format needs an end.
    """
    if every is None:
        return make()
    settings.check_endless("--watch")
    from rwq_cli.core.clock import SystemClock
    from rwq_cli.core.inspect.rates import RateMeter
    from rwq_cli.output.report import Watch
    from rwq_cli.service.rounds import Rounds
    from rwq_cli.views.watching import with_rates, with_time

    # Elsewhere than on a terminal, each tick is a record.
    settings.describes = False
    # Progress would be drawn over the report.
    settings.end_progress()
    environment = settings.environment
    is_live = environment.stdout_can_redraw and settings.output.is_for_people

    def note(line: str) -> None:
        # On a terminal it is below the report.
        if not is_live:
            environment.error(f"rwq: {line}")

    meter = RateMeter()

    def make_tick() -> "Records[Any]":
        seconds, microseconds = connection.call("TIME")
        report = make()
        view = with_time(report.view, int(seconds) * 1000 + int(microseconds) // 1000)
        if rated is not None:
            view = with_rates(view, meter.read(rated()))
        return report._replace(view=view)

    rounds = Rounds(every, SystemClock(), note=note, is_exact=True)
    return Watch(
        make_tick,
        rounds,
        rounds.failed,
        lambda: time.strftime(f"%H:%M:%S, every {every}"),
        ending_on_terminate(),
    )
