"""`rwq check`: a queue's numbers against limits, for monitoring."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_connection, open_queue
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.inspect.thresholds import Check, Level, Limits, Measure, evaluate, worst
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import MonitoringStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output.report import Report, Verdict, View
from rwq_cli.views.monitoring import check_fields, nagios_line, prometheus_text

app = CommandModule()


class CheckFormat(StrEnum):
    """For which kind of monitor."""

    NAGIOS = "nagios"
    PROMETHEUS = "prometheus"


def _number(measure: Measure, level: str, what: str) -> Any:
    return typer.Option(f"--{measure.value}-{level}", metavar="N", min=0, help=what)


@app.command(
    help="Compare a queue's numbers with limits: one line and an exit code, as monitors want them.",
    examples=(
        "rwq check -q jobs --waiting-warn 100 --waiting-critical 1000",
        "rwq check -q jobs --age-critical 15m --abandoned-warn 10",
        "rwq check -q jobs -q mails --format prometheus",
    ),
    exits={
        MonitoringStatus.OK: "OK: nothing is above a limit",
        MonitoringStatus.WARNING: "WARNING: something is above a limit for warnings",
        MonitoringStatus.CRITICAL: "CRITICAL: something is above a limit for what is critical",
        MonitoringStatus.UNKNOWN: "UNKNOWN: the server was not reached or refused, wrong "
        "usage, or what a limit is for is not known",
    },
    reads_only=True,
    monitors=True,
)
def check(
    settings: Settings,
    waiting_warn: Annotated[
        int | None, _number(Measure.WAITING, "warn", "WARNING if more items wait.")
    ] = None,
    waiting_critical: Annotated[
        int | None, _number(Measure.WAITING, "critical", "CRITICAL if more items wait.")
    ] = None,
    age_warn: Annotated[
        str | None,
        typer.Option(
            "--age-warn", metavar="DUR", help="WARNING if the next item waits for longer."
        ),
    ] = None,
    age_critical: Annotated[
        str | None,
        typer.Option(
            "--age-critical", metavar="DUR", help="CRITICAL if the next item waits for longer."
        ),
    ] = None,
    abandoned_warn: Annotated[
        int | None, _number(Measure.ABANDONED, "warn", "WARNING if more are abandoned.")
    ] = None,
    abandoned_critical: Annotated[
        int | None, _number(Measure.ABANDONED, "critical", "CRITICAL if more are abandoned.")
    ] = None,
    processing_warn: Annotated[
        int | None, _number(Measure.PROCESSING, "warn", "WARNING if more are in processing.")
    ] = None,
    processing_critical: Annotated[
        int | None, _number(Measure.PROCESSING, "critical", "CRITICAL if more are in processing.")
    ] = None,
    delayed_warn: Annotated[
        int | None, _number(Measure.DELAYED, "warn", "WARNING if more are delayed.")
    ] = None,
    delayed_critical: Annotated[
        int | None, _number(Measure.DELAYED, "critical", "CRITICAL if more are delayed.")
    ] = None,
    buried_warn: Annotated[
        int | None, _number(Measure.BURIED, "warn", "WARNING if more are buried.")
    ] = None,
    buried_critical: Annotated[
        int | None, _number(Measure.BURIED, "critical", "CRITICAL if more are buried.")
    ] = None,
    orphaned_warn: Annotated[
        int | None,
        _number(Measure.ORPHANED, "warn", "WARNING if more are orphaned; needs --deep."),
    ] = None,
    orphaned_critical: Annotated[
        int | None,
        _number(Measure.ORPHANED, "critical", "CRITICAL if more are orphaned; needs --deep."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Walk the whole queue, to count orphans.")
    ] = False,
    output_format: Annotated[
        CheckFormat,
        typer.Option(
            "--format",
            help="nagios: one line with performance data. prometheus: all numbers for a textfile "
            "collector, of every -q.",
        ),
    ] = CheckFormat.NAGIOS,
) -> Report:
    limits = {
        measure: Limits(warn, critical)
        for measure, warn, critical in (
            (Measure.WAITING, waiting_warn, waiting_critical),
            (Measure.AGE, _seconds(age_warn), _seconds(age_critical)),
            (Measure.ABANDONED, abandoned_warn, abandoned_critical),
            (Measure.PROCESSING, processing_warn, processing_critical),
            (Measure.DELAYED, delayed_warn, delayed_critical),
            (Measure.BURIED, buried_warn, buried_critical),
            (Measure.ORPHANED, orphaned_warn, orphaned_critical),
        )
    }
    for measure, limit in limits.items():
        if limit.critical is not None and (limit.warn or 0) > limit.critical:
            name = measure.value
            raise InvalidArgument(
                f"--{name}-warn is above --{name}-critical", "a warning comes first"
            )
    if limits[Measure.ORPHANED] != Limits() and not deep:
        raise InvalidArgument("orphaned items are counted by a walk only", "say --deep, too")
    if output_format is CheckFormat.PROMETHEUS:
        return _for_prometheus(settings, limits, deep=deep)
    found = open_queue(settings).check(limits, deep=deep)
    return _verdict([found], nagios_line(found), found.level, one_only=True)


def _for_prometheus(settings: Settings, limits: dict[Measure, Limits], *, deep: bool) -> Report:
    """Every queue that can be read; of the others it is told that they cannot."""
    names = settings.queues or [settings.queue]
    connection = open_connection(settings)
    found: list[Check] = []
    for name in names:
        try:
            found.append(WorkQueue(connection, name).check(limits, deep=deep))
        except ServerError as error:
            settings.environment.note(f"rwq: error: {error.message}")
    text = prometheus_text(names, found)
    level = worst([each.level for each in found]) if len(found) == len(names) else Level.UNKNOWN
    return _verdict(found, text, level, one_only=len(names) == 1)


def _verdict(found: list[Check], text: str, level: Level, *, one_only: bool) -> Report:
    return Verdict(
        view=View(
            (), check_fields, lambda each: each.counts.queue, evaluate(Counts(b"", 0, 0, 0, 0), {})
        ),
        records=found,
        text=text,
        one_only=one_only,
        status=MonitoringStatus[level.value],
    )


def _seconds(text: str | None) -> float | None:
    return None if text is None else parse_duration(text)
