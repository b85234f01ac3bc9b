"""`rwq check`: compare a queue's counts with limits, for monitoring."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rwq_cli.cli.connect import OpenQueues, warn_missing
from rwq_cli.cli.options import COUNT_MAX, AllQueuesOption, duration
from rwq_cli.commands import InvalidArgument, Settings, command, option
from rwq_cli.core.errors import ServerError, Unavailable, Unreachable
from rwq_cli.core.health import ServerStatus
from rwq_cli.core.inspect import thresholds
from rwq_cli.core.inspect.queues import exists
from rwq_cli.core.inspect.server_status import server_statuses
from rwq_cli.core.inspect.thresholds import Check, Level, Limits, Measure, Range
from rwq_cli.core.server.patience import connecting
from rwq_cli.environment import signals_to
from rwq_cli.exit_codes import MonitoringStatus, UsageError
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.exposition import exposition
from rwq_cli.views.health import server_metrics
from rwq_cli.views.monitoring import (
    CHECK_FIELDS,
    nagios_line,
    nagios_lines,
    queue_metrics,
)

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue

# Monitoring systems kill a check after 10 s, and then know nothing.
ANSWERS_WITHIN_S = 9.0
# The share of it for getting the password, which must leave the server time to answer.
PASSWORD_SHARE = 0.8


CheckFormat = StrEnum("CheckFormat", "NAGIOS PROMETHEUS")


def _offer() -> list[str]:
    return [f"{measure}=" for measure in Measure]


def _limit(text: str) -> tuple[Measure, Range]:
    name, _, value = text.partition("=")
    if name not in tuple(Measure):
        raise UsageError(
            f"not a limit: {text!r}", f"give NAME=RANGE; the names are {', '.join(Measure)}"
        )
    measure, (low, colon, high) = Measure(name), value.removeprefix("@").rpartition(":")
    lowest = -inf if low == "~" else _bound(measure, low) if low else 0
    highest = inf if colon and not high else _bound(measure, high)
    if lowest > highest:
        raise UsageError(f"no value is in the range of {text}", "give LOW:HIGH")
    return measure, Range(lowest, highest, value.startswith("@"))


def _bound(measure: Measure, text: str) -> float:
    if measure.is_time:
        return duration(text)
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(
            f"the limit of {measure} cannot be {text!r}",
            "it must be a whole number of at least 0, or a range such as 1:, 10:20 or @0",
        )
    return min(int(text), COUNT_MAX)


class CheckOptions(NamedTuple):
    """What is checked, and how it is said: the options of the command."""

    settings: Settings
    warn: Annotated[
        list[Any] | None,
        option("--warn NAME=RANGE", f"WARNING outside it: {', '.join(Measure)}.", _limit, _offer),
    ] = None
    critical: Annotated[
        list[Any] | None,
        option("--critical NAME=RANGE", "CRITICAL outside it.", _limit, _offer),
    ] = None
    deep: Annotated[bool, option("--deep", "Walk the whole queue, to count orphans.")] = False
    must_exist: Annotated[
        bool,
        option(
            "--must-exist", "CRITICAL if a queue has no key (drained, or gone), or none matches."
        ),
    ] = False
    output_format: Annotated[
        CheckFormat, option("--format", "nagios: one line; prometheus: for a textfile collector.")
    ] = CheckFormat.NAGIOS
    all_queues: AllQueuesOption = False

    @property
    def is_nagios(self) -> bool:
        return self.output_format is CheckFormat.NAGIOS

    def limits(self) -> dict[Measure, Limits]:
        """Return the limits of each measure; raise if they contradict each other."""
        ranges = {"--warn": self.warn or [], "--critical": self.critical or []}
        for name, pairs in ranges.items():
            counts = Counter(measure for measure, _ in pairs)
            if repeated := next((measure for measure in counts if counts[measure] > 1), None):
                raise InvalidArgument(f"{name} {repeated} was given twice", "give each limit once")
        warn, critical = map(dict, ranges.values())
        limits = {name: Limits(warn.get(name), critical.get(name)) for name in Measure}
        for measure, (warning, alarm) in limits.items():
            if warning and alarm and warning.high > alarm.high and not alarm.is_inside:
                raise InvalidArgument(
                    f"--warn {measure} is above --critical {measure}",
                    "the warning limit must be the lower one",
                )
        if limits[Measure.ORPHANED] != Limits() and not self.deep:
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
def check(settings: Settings, options: CheckOptions) -> MonitoringStatus:
    """Compare a queue's counts with limits, for monitoring: one line and an exit code, within 10
    seconds unless --deep is given.

    rwq check -q jobs --warn waiting=100 --critical waiting=1000
    rwq check -q jobs --critical age=15m --warn abandoned=10
    rwq check -q jobs --must-exist --critical waiting=1:5000
    rwq check --all-queues --format prometheus
    """
    reading = _Reading(options)
    seconds = ANSWERS_WITHIN_S if not options.deep else 0.0
    with _in_time(seconds) if options.is_nagios else nullcontext():
        try:
            if seconds:
                connecting.ends_s = time.monotonic() + PASSWORD_SHARE * seconds
            opened = OpenQueues(settings, all_queues=options.all_queues, any_type=True).find()
            reading.read(opened)
        except ServerError as error:
            if options.is_nagios:
                raise
            # A textfile collector keeps the file: it must say that nothing could be read.
            settings.environment.error(f"rwq: error: {escaped_text(error.message)}")
            settings.out.describe([], CHECK_FIELDS, text=exposition(server_metrics([])))
            return MonitoringStatus.UNKNOWN
        finally:
            connecting.ends_s = inf
    settings.out.describe(reading.checks, CHECK_FIELDS, text=reading.text, is_one=opened.is_one)
    return MonitoringStatus[reading.level.value]


class _Reading:
    """Reads the queues, and says what was read."""

    def __init__(self, options: CheckOptions) -> None:
        self._options, self._limits = options, options.limits()
        self._settings, self._is_nagios = options.settings, options.is_nagios
        self.checks: list[Check] = []
        # Why the others could not be read.
        self._unread: dict[bytes, str] = {}
        self._is_absent = self._is_line = False
        self._names: list[bytes] = []
        self._servers: list[ServerStatus] = []

    def read(self, opened: OpenQueues) -> None:
        self._is_line = self._is_nagios and opened.is_one
        self._names = [queue.name for queue in opened.queues]
        queues = iter(opened.queues)
        for queue in queues:
            if self._settings.common_options.get("patience") is None:
                # Monitoring wants the present state, so do not wait for the server.
                queue.connection.patience_s = 0
            try:
                self.checks.append(self._check(queue))
            except ServerError as error:
                if self._is_line:
                    raise
                reason = self._unread[queue.name] = escaped_text(error.message)
                self._settings.environment.error(f"rwq: error: {reason}")
                if isinstance(error, Unreachable) and not queue.connection.is_cluster:
                    # Each of the others would wait just as long.
                    self._unread.update((other.name, reason) for other in queues)
        if not self._is_nagios:
            self._servers = self._read_servers(opened)

    def _check(self, queue: "WorkQueue") -> Check:
        check = thresholds.check(queue, self._limits, deep=self._options.deep)
        if not check.counts.is_empty:
            return check
        warn_missing(self._settings, queue)
        is_absent = not exists(queue)
        # Monitoring does not read stderr.
        self._is_absent = self._is_line and is_absent
        return check._replace(is_missing=is_absent and self._options.must_exist)

    def _read_servers(self, opened: OpenQueues) -> list[ServerStatus]:
        if self.checks and not opened.connection.is_cluster:
            status = self.checks[0].counts.server
            return [status] if status else []
        return server_statuses(opened.connection) if not self._unread else []

    @property
    def level(self) -> Level:
        nothing = Level.CRITICAL if self._options.must_exist and not self._names else Level.OK
        level = thresholds.worst([nothing, *(check.level for check in self.checks)])
        if self._unread:
            level = thresholds.worst([level, Level.UNKNOWN]) if self._is_nagios else Level.UNKNOWN
        return level

    @property
    def text(self) -> str:
        if not self._is_nagios:
            servers = server_metrics(self._servers)
            return exposition([*servers, *queue_metrics(self._names, self.checks)])
        if self._is_line:
            return nagios_line(self.checks[0], is_absent=self._is_absent)
        return nagios_lines(self._unread, self.checks, self.level)
