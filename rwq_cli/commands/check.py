"""`rwq check`: compare a queue's counts with limits, for monitoring."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

from rwq_cli.cli.connect import OpenQueues, warn_if_missing
from rwq_cli.cli.options import COUNT_MAX, AllQueuesOption
from rwq_cli.commands import Duration, InvalidArgument, Settings, command, option
from rwq_cli.core.errors import ServerError, Unavailable, Unreachable
from rwq_cli.core.inspect import thresholds
from rwq_cli.core.inspect.queues import exists
from rwq_cli.core.inspect.thresholds import Check, Level, Limits, Measure
from rwq_cli.core.server.patience import deadline
from rwq_cli.environment import signals_to
from rwq_cli.exit_codes import MonitoringStatus, UsageError
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.exposition import exposition
from rwq_cli.views.monitoring import CHECK_FIELDS, nagios_line, nagios_lines, queue_metrics

# Monitoring systems kill a check after 10 s, and then know nothing.
ANSWERS_WITHIN_S = 9.0
# The share of it for getting the password, which must leave the server time to answer.
PASSWORD_SHARE = 0.8


CheckFormat = StrEnum("CheckFormat", "NAGIOS PROMETHEUS")


def _limit(text: str) -> tuple[Measure, float]:
    name, _, value = text.partition("=")
    if name not in tuple(Measure):
        raise UsageError(
            f"not a limit: {text!r}", f"give NAME=VALUE; the names are {', '.join(Measure)}"
        )
    if name == Measure.AGE:
        return Measure.AGE, Duration(value)
    if not (value.isascii() and value.isdecimal()):
        raise UsageError(
            f"the limit of {name} cannot be {value!r}", "it must be a whole number of at least 0"
        )
    return Measure(name), min(int(value), COUNT_MAX)


def _limits(
    warn: Sequence[tuple[Measure, float]], critical: Sequence[tuple[Measure, float]], *, deep: bool
) -> dict[Measure, Limits]:
    limits = {each: Limits(dict(warn).get(each), dict(critical).get(each)) for each in Measure}
    for measure, (warns, criticals) in limits.items():
        if warns is not None and criticals is not None and warns > criticals:
            raise InvalidArgument(
                f"--warn {measure} is above --critical {measure}",
                "the warning limit must be the lower one",
            )
    if limits[Measure.ORPHANED] != Limits() and not deep:
        raise InvalidArgument(
            "only a walk over the whole queue counts orphaned items", "add --deep"
        )
    return limits


class _TooSlow(BaseException):
    """The time is up; a BaseException, so that only the command handles it."""


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise _TooSlow

    with signals_to(give_up, signal.SIGALRM):
        # Repeated, because an exception raised in a garbage-collector callback is lost.
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        try:
            yield
        except _TooSlow:
            hint = "is the server busy, or the network slow?"
            raise Unavailable(f"no answer within {seconds:g}s", hint) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@command(
    record=CHECK_FIELDS,
    exits={status: status.meaning for status in MonitoringStatus},
    reads_only=True,
    monitors=True,
)
def check(
    settings: Settings,
    warn: Annotated[
        list[Any] | None,
        option("--warn NAME=VALUE", f"WARNING above: {', '.join(Measure)}; repeatable.", _limit),
    ] = None,
    critical: Annotated[
        list[Any] | None, option("--critical NAME=VALUE", "CRITICAL if more than this.", _limit)
    ] = None,
    deep: Annotated[bool, option("--deep", "Walk the whole queue, to count orphans.")] = False,
    output_format: Annotated[
        CheckFormat, option("--format", "nagios: one line; prometheus: for a textfile collector.")
    ] = CheckFormat.NAGIOS,
    all_queues: AllQueuesOption = False,
) -> MonitoringStatus:
    """Compare a queue's counts with limits, for monitoring: one line and an exit code, within 10
    seconds unless --deep is given.

    rwq check -q jobs --warn waiting=100 --critical waiting=1000
    rwq check -q jobs --critical age=15m --warn abandoned=10
    rwq check --all-queues --format prometheus
    """
    limits = _limits(warn or (), critical or (), deep=deep)
    is_nagios = output_format is CheckFormat.NAGIOS
    checks: list[Check] = []
    unread: dict[bytes, str] = {}
    seconds = ANSWERS_WITHIN_S if is_nagios and not deep else 0.0
    with _in_time(seconds):
        with deadline(PASSWORD_SHARE * seconds):
            opened = OpenQueues(settings, all_queues=all_queues, any_type=True).find()
        is_line, rest = is_nagios and opened.is_one, iter(opened.queues)
        for queue in rest:
            if settings.given.get("patience") is None:
                # Monitoring wants the present state, so do not wait for the server.
                queue.connection.patience_s = 0
            try:
                found = [thresholds.check(queue, limits, deep=deep)]
                checks += warn_if_missing(settings, queue, found, lambda one: one.counts.is_empty)
            except ServerError as error:
                if is_line:
                    raise
                reason = unread[queue.name] = escaped_text(error.message)
                settings.environment.error(f"rwq: error: {reason}")
                if isinstance(error, Unreachable) and not queue.connection.is_cluster:
                    # Each of the others would wait just as long.
                    unread.update(dict.fromkeys((each.name for each in rest), reason))
        # Monitoring does not read stderr.
        is_absent = is_line and checks[0].counts.is_empty and not exists(opened.queues[0])
    level = thresholds.worst([Level.OK, *(check.level for check in checks)])
    if unread:
        level = thresholds.worst([level, Level.UNKNOWN]) if is_nagios else Level.UNKNOWN
    if not is_nagios:
        text = exposition(queue_metrics([queue.name for queue in opened.queues], checks))
    elif opened.is_one:
        text = nagios_line(checks[0], is_absent=is_absent)
    else:
        text = nagios_lines(unread, checks, level)
    settings.out.describe(checks, CHECK_FIELDS, text=text, is_one=opened.is_one)
    return MonitoringStatus[level.value]
