"""`rwq check`: compare a queue's counts with limits, for monitoring."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from inspect import Parameter
from typing import Annotated, Any

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.open_queues import open_matching_queues
from rwq_cli.cli.options import AllQueuesOption, Duration, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, ServerError, Unreachable
from rwq_cli.core.inspect.thresholds import (
    Check,
    Level,
    Limits,
    Measure,
    check as check_queue,
    worst,
)
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import MonitoringStatus
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.report import Report
from rwq_cli.views.monitoring import check_report, nagios_line, nagios_lines, prometheus_text

app = CommandModule()


class CheckFormat(StrEnum):
    """The values of `--format`."""

    NAGIOS = "nagios"
    PROMETHEUS = "prometheus"


_CONDITIONS = {
    Measure.WAITING: "more items wait",
    Measure.AGE: "the next item has waited longer",
    Measure.ABANDONED: "more are abandoned",
    Measure.PROCESSING: "more are in processing",
    Measure.DELAYED: "more are delayed",
    Measure.BURIED: "more are buried",
    Measure.ORPHANED: "more are orphaned; needs --deep",
}


class LimitOptions:
    """The options for the limits of every measure, as an `OptionGroup`."""

    def parameters(self) -> Sequence[Parameter]:
        """The two limits of each measure."""
        return [
            Parameter(
                f"{measure.value}_{level}",
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_limit(measure, level, f"{word} if {condition}."),
            )
            for measure, condition in _CONDITIONS.items()
            for level, word in (("warn", "WARNING"), ("critical", "CRITICAL"))
        ]

    def read(self, _settings: Settings, **given: float | None) -> dict[Measure, Limits]:
        """The limits.

        Raises:
            InvalidArgument: A warning limit is above the critical one.
        """
        limits = {
            measure: Limits(given[f"{measure.value}_warn"], given[f"{measure.value}_critical"])
            for measure in _CONDITIONS
        }
        for measure, limit in limits.items():
            if limit.critical is not None and (limit.warn or 0) > limit.critical:
                name = measure.value
                raise InvalidArgument(
                    f"--{name}-warn is above --{name}-critical",
                    "the warning limit must be the lower one",
                )
        return limits


def _limit(measure: Measure, level: str, help: str) -> Any:
    name = f"--{measure.value}-{level}"
    if measure is Measure.AGE:
        return Annotated[Duration | None, option(f"{name} DUR", help, Duration)]
    return Annotated[int | None, option(f"{name} N", help, min=0)]


@app.command(
    help="Compare a queue's counts with limits, for monitoring: one line and an exit code.",
    examples=(
        "rwq check -q jobs --waiting-warn 100 --waiting-critical 1000",
        "rwq check -q jobs --age-critical 15m --abandoned-warn 10",
        "rwq check --all-queues --format prometheus",
    ),
    exits={status: status.meaning for status in MonitoringStatus},
    reads_only=True,
    monitors=True,
)
def check(
    settings: Settings,
    limits: Annotated[Mapping[Measure, Limits], LimitOptions()],
    deep: Annotated[bool, option("--deep", "Walk the whole queue, to count orphans.")] = False,
    output_format: Annotated[
        CheckFormat,
        option(
            "--format",
            "nagios: one line with performance data. prometheus: all counts of every "
            "queue, for a textfile collector.",
        ),
    ] = CheckFormat.NAGIOS,
    all_queues: AllQueuesOption = False,
) -> Report:
    if limits[Measure.ORPHANED] != Limits() and not deep:
        raise InvalidArgument(
            "only a walk over the whole queue counts orphaned items", "add --deep"
        )
    opened = open_matching_queues(settings, all_queues=all_queues, any_type=True)
    is_nagios = output_format is CheckFormat.NAGIOS
    if is_nagios and opened.is_one:
        queue = opened.queues[0]
        (found,) = noting_absence(
            settings,
            queue,
            [check_queue(queue, limits, deep=deep)],
            lambda check: check.counts.is_empty,
        )
        # Monitoring does not read stderr.
        line = nagios_line(found, is_absent=found.counts.is_empty and not queue.exists())
        return check_report([found], line, found.level, one=True)
    checks, unread = _checks(settings, opened.queues, limits, deep=deep)
    names = [queue.name for queue in opened.queues]
    level = worst([Level.OK, *(check.level for check in checks)])
    if unread:
        level = worst([level, Level.UNKNOWN]) if is_nagios else Level.UNKNOWN
    text = nagios_lines(unread, checks, level) if is_nagios else prometheus_text(names, checks)
    return check_report(checks, text, level, one=opened.is_one)


def _checks(
    settings: Settings, queues: list[WorkQueue], limits: Mapping[Measure, Limits], *, deep: bool
) -> tuple[list[Check], dict[bytes, str]]:
    """The checks of the queues that can be read, and by name why the others cannot."""
    checks: list[Check] = []
    unread: dict[bytes, str] = {}
    rest = iter(queues)
    for queue in rest:
        try:
            found = [check_queue(queue, limits, deep=deep)]
            checks += noting_absence(settings, queue, found, lambda check: check.counts.is_empty)
        except ServerError as error:
            unread[queue.name] = escaped_text(error.message)
            settings.environment.error(f"rwq: error: {unread[queue.name]}")
            if isinstance(error, Unreachable) and not queue.connection.is_cluster:
                # Each of the others would wait for as long.
                unread |= dict.fromkeys((each.name for each in rest), unread[queue.name])
    return checks, unread
