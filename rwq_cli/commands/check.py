"""`rwq check`: compare a queue's counts with limits, for monitoring."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.open_queues import open_matching_queues, warn_if_missing
from rwq_cli.cli.options import COUNT_MAX, AllQueuesOption, Duration, option
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
from rwq_cli.exit_codes import MonitoringStatus, UsageError
from rwq_cli.output.escape import escaped_text
from rwq_cli.views.monitoring import CHECK_FIELDS, nagios_line, nagios_lines, prometheus_text

app = CommandModule()


class CheckFormat(StrEnum):
    """The values of `--format`."""

    NAGIOS = "nagios"
    PROMETHEUS = "prometheus"


def _limit(text: str) -> tuple[Measure, float]:
    """A limit from the command line, such as `waiting=1000` or `age=15m`."""
    name, _, value = text.partition("=")
    if name not in tuple(Measure):
        raise UsageError(
            f"no limit can be {text!r}", f"give NAME=VALUE; the names are {', '.join(Measure)}"
        )
    if name == Measure.AGE:
        return Measure.AGE, Duration(value)
    if not (value.isascii() and value.isdecimal()):
        raise UsageError(
            f"the limit of {name} cannot be {value!r}", "it must be a whole number of at least 0"
        )
    return Measure(name), min(int(value), COUNT_MAX)


def _limits(
    warn: Sequence[tuple[Measure, float]], critical: Sequence[tuple[Measure, float]]
) -> dict[Measure, Limits]:
    """The limits of every measure.

    Raises:
        InvalidArgument: A warning limit is above the critical one.
    """
    warnings, criticals = dict(warn), dict(critical)
    for measure, limit in criticals.items():
        if warnings.get(measure, 0) > limit:
            raise InvalidArgument(
                f"--warn {measure} is above --critical {measure}",
                "the warning limit must be the lower one",
            )
    return {each: Limits(warnings.get(each), criticals.get(each)) for each in Measure}


@app.command(
    record=CHECK_FIELDS,
    help="Compare a queue's counts with limits, for monitoring: one line and an exit code.",
    examples=(
        "rwq check -q jobs --warn waiting=100 --critical waiting=1000",
        "rwq check -q jobs --critical age=15m --warn abandoned=10",
        "rwq check --all-queues --format prometheus",
    ),
    exits={status: status.meaning for status in MonitoringStatus},
    reads_only=True,
    monitors=True,
)
def check(
    settings: Settings,
    warn: Annotated[
        list[Any] | None,
        option(
            "--warn NAME=VALUE",
            "WARNING if more than this (repeatable): waiting, abandoned, processing, delayed, "
            "buried or orphaned (counts), or age (a duration).",
            _limit,
        ),
    ] = None,
    critical: Annotated[
        list[Any] | None, option("--critical NAME=VALUE", "CRITICAL if more than this.", _limit)
    ] = None,
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
) -> MonitoringStatus:
    limits = _limits(warn or (), critical or ())
    if limits[Measure.ORPHANED] != Limits() and not deep:
        raise InvalidArgument(
            "only a walk over the whole queue counts orphaned items", "add --deep"
        )
    opened = open_matching_queues(settings, all_queues=all_queues, any_type=True)
    is_nagios = output_format is CheckFormat.NAGIOS
    if is_nagios and opened.is_one:
        queue = opened.queues[0]
        (found,) = warn_if_missing(
            settings,
            queue,
            [check_queue(queue, limits, deep=deep)],
            lambda check: check.counts.is_empty,
        )
        # Monitoring does not read stderr.
        line = nagios_line(found, is_absent=found.counts.is_empty and not queue.exists())
        settings.out.describe([found], CHECK_FIELDS, text=line)
        return MonitoringStatus[found.level.value]
    checks, unread = _checks(settings, opened.queues, limits, deep=deep)
    names = [queue.name for queue in opened.queues]
    level = worst([Level.OK, *(check.level for check in checks)])
    if unread:
        level = worst([level, Level.UNKNOWN]) if is_nagios else Level.UNKNOWN
    text = nagios_lines(unread, checks, level) if is_nagios else prometheus_text(names, checks)
    settings.out.describe(checks, CHECK_FIELDS, text=text, is_one=opened.is_one)
    return MonitoringStatus[level.value]


def _checks(
    settings: Settings, queues: list[WorkQueue], limits: Mapping[Measure, Limits], *, deep: bool
) -> tuple[list[Check], dict[bytes, str]]:
    """The checks of the queues that can be read, and by name why the others cannot."""
    checks: list[Check] = []
    unread: dict[bytes, str] = {}
    rest = iter(queues)
    for queue in rest:
        if settings.given.get("patience") is None:
            # Whoever monitors wants to know how it is now.
            queue.connection.patience_s = 0
        try:
            found = [check_queue(queue, limits, deep=deep)]
            checks += warn_if_missing(settings, queue, found, lambda check: check.counts.is_empty)
        except ServerError as error:
            unread[queue.name] = escaped_text(error.message)
            settings.environment.error(f"rwq: error: {unread[queue.name]}")
            if isinstance(error, Unreachable) and not queue.connection.is_cluster:
                # Each of the others would wait for as long.
                unread |= dict.fromkeys((each.name for each in rest), unread[queue.name])
    return checks, unread
