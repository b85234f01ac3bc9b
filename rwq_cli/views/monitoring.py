"""Checks for monitoring: the line of a Nagios plugin, and the text format of Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from rwq_cli.core.errors import ConnectionLost, ServerError, Unreachable
from rwq_cli.core.handle import Queue
from rwq_cli.core.health import ServerStatus
from rwq_cli.core.inspect import thresholds
from rwq_cli.core.inspect.server_status import server_statuses
from rwq_cli.core.inspect.thresholds import Check, Evaluation, Level, Limits, Measure, Range
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.exposition import Metric
from rwq_cli.output.field import ID, Field, Fields, field
from rwq_cli.views.counts import ITEMS, OTHERS
from rwq_cli.views.health import refusal_in_words, server_metrics

if TYPE_CHECKING:
    from rwq_cli.core.inspect.rates import ItemTotals
    from rwq_cli.core.server.connection import Connection

# Prometheus waits for 10 s by default.
_REPLY_TIMEOUT_S = 4.0

# The measures that are in the line even without limits.
_USUAL = (Measure.WAITING, Measure.AGE, Measure.ABANDONED)


def nagios_line(check: Check, *, is_absent: bool = False) -> str:
    """Return the line of a monitoring plugin: level, measures, and performance data after `|`."""
    words = [
        _in_words(check, reading)
        for reading in check.by_measure.values()
        if reading.measure in _USUAL or reading.limits != Limits()
    ]
    absent = "no such queue, or it is empty; " if is_absent else ""
    refusal = refusal_in_words(check.counts.server) if check.counts.server else None
    refused = f"the server refuses writes: {refusal}; " if refusal else ""
    text = f"{escaped(check.counts.queue)}: {refused}{absent}{', '.join(words)}"
    return _line(check.level, text, [*_performance(check)])


def nagios_lines(unread: Mapping[bytes, str], checks: Sequence[Check], level: Level) -> str:
    # Monitoring does not read stderr.
    parts = [
        f"{', '.join(escaped(queue) for queue in unread if unread[queue] == reason)}: {reason}"
        for reason in dict.fromkeys(unread.values())
    ]
    alerting, data = len(unread), list[str]()
    for check in checks:
        name = escaped(check.counts.queue)
        if alerts := [alert.partition(": ")[2] for alert in alerts_of(check)]:
            parts.append(f"{name}: {', '.join(alerts)}")
            alerting += 1
        # Escaped for the label of performance data, which is quoted.
        label = name.replace("'", "''").replace("=", "\\x3d").replace("|", "\\x7c")
        data += _performance(check, f"{label}:")
    total = len(unread) + len(checks)
    count = human.counted(total, "queue")
    parts.append(f"{total - alerting:,} of {count} OK" if parts else f"{count} OK")
    if not total:
        # A pattern may be mistyped.
        parts = ["no queues, or all are empty"]
    return _line(level, "; ".join(parts), data)


def unknown_line(reason: str) -> str:
    return _line(Level.UNKNOWN, reason)


def _line(level: Level, text: str, data: Sequence[str] = ()) -> str:
    # A `|` would begin the performance data, and cannot be escaped.
    line = f"RWQ {level.value} - {text}".replace("|", "\\x7c")
    return f"{line} | {' '.join(data)}\n" if data else f"{line}\n"


def _performance(check: Check, prefix: str = "") -> Iterator[str]:
    """Yield the performance data of a queue, as `name=value;warn;critical;min`."""
    for reading in check.by_measure.values():
        label = f"'{prefix}{reading.measure}'" if prefix else reading.measure
        if reading.value is not None:
            unit = "s" if reading.measure.is_time else ""
            texts = map(_range_text, (reading.limits.warn, reading.limits.critical))
            yield f"{label}={reading.value}{unit};{';'.join(texts)};0"
        elif reading.limits != Limits():
            yield f"{label}=U"


def _range_text(limit: Range | None) -> str:
    """A range as monitoring plugins write it."""
    if limit is None:
        return ""
    high = "" if limit.high == inf else f"{limit.high:.10g}"
    low = "" if limit.low == 0 and high else f"{limit.low:.10g}:".replace("-inf", "~")
    return f"{'@' * limit.is_inside}{low}{high}"


def alerts_of(check: Check) -> list[str]:
    """What is wrong, each as `LEVEL: text`."""
    alerts = [f"{Level.CRITICAL}: no such queue, or it is empty"] * check.is_missing
    if check.counts.server and (refusal := refusal_in_words(check.counts.server)):
        alerts.append(f"{Level.CRITICAL}: the server refuses writes: {refusal}")
    for evaluation in check.by_measure.values():
        if evaluation.level is not Level.OK:
            alerts.append(f"{evaluation.level}: {_in_words(check, evaluation)}")
    return alerts


def _in_words(check: Check, evaluation: Evaluation) -> str:
    """Describe a measure with the limit that it breaks, and a restart that cuts an age short."""
    measure, value, limits, level = evaluation
    show = human.duration if measure.is_time else human.count
    text = "unknown" if value is None else show(value)
    names = {
        Measure.AGE: f"oldest {text}",
        Measure.LEASE: f"longest lease {text}",
        Measure.STALLED: f"the same item next, and nothing done, for {text}",
    }
    text = names.get(measure, f"{text} {measure}")
    if measure is Measure.AGE and check.server_up_s is not None:
        text = f"age>={value}s, server up {check.server_up_s}s"
    limit = limits.critical if level is Level.CRITICAL else limits.warn
    if limit is None or value is None or level not in (Level.WARNING, Level.CRITICAL):
        return text
    if limit.is_inside:
        return f"{text} (in {_range_text(limit)})"
    if value < limit.low:
        return f"{text} (below {show(int(limit.low))})"
    return f"{text} (above {show(int(limit.high))})"


def _measure(measure: Measure) -> Field[Check]:
    limited = (Measure.ORPHANED, Measure.STALLED)
    condition = ", if there is a limit for it" if measure in limited else ""
    name = "oldest_waiting_seconds" if measure is Measure.AGE else measure.value
    meaning = f"as in the counts{condition}"
    return field(name, lambda check: check.by_measure[measure].value, meaning)


CHECK_FIELDS: Fields[Check] = Fields(
    "A check",
    field("queue", "counts.queue", "the queue's name", ID),
    field("status", "level", "`OK`, `WARNING`, `CRITICAL` or `UNKNOWN`"),
    *map(_measure, Measure),
    field(
        "alerts",
        alerts_of,
        "each limit that is exceeded, or cannot be checked, as `LEVEL: text`",
    ),
    field("server_up_seconds", "server_up_s", "since a restart that cuts the age short; else null"),
)


def queue_metrics(queues: Sequence[bytes], checks: Sequence[Check]) -> list[Metric]:
    counts = [check.counts for check in checks]
    readable = {count.queue for count in counts}
    up = [(queue, int(queue in readable)) for queue in queues]
    ages = [(check.counts.queue, check.by_measure[Measure.AGE].value) for check in checks]
    leases = [(check.counts.queue, check.by_measure[Measure.LEASE].value) for check in checks]
    times = [(check.counts.queue, check.counts.last_clean_ms) for check in checks]
    cleans = [(queue, None if ms is None else ms // 1000) for queue, ms in times]
    metrics = [
        _by_queue("up", "Whether the queue could be read.", up),
        _by_queue("oldest_waiting_seconds", "Seconds since the next item was last used.", ages),
        _by_queue("last_clean_timestamp_seconds", "When a clean last wrote the history.", cleans),
        _by_queue("longest_lease_seconds", "Seconds until the last lease ends.", leases),
    ]
    for suffix, helps in (("_items", ITEMS), ("", OTHERS)):
        for name, help in helps.items():
            values = [(count.queue, getattr(count, name)) for count in counts]
            text = f"{help[0].upper()}{help[1:]}.".replace("`", "")
            metrics.append(_by_queue(name + suffix, text, values))
    return metrics


def _by_queue(name: str, help: str, values: Sequence[tuple[bytes, int | None]]) -> Metric:
    return Metric(name, help, [({"queue": queue}, value) for queue, value in values])


def item_metrics(totals: "ItemTotals") -> list[Metric]:
    """The items added and done since a service began, of the queues that it can follow."""
    helps = "Items added", "Items completed, removed or moved away"
    counts = [({"queue": queue}, count) for queue, count in totals.by_queue.copy().items()]
    return [
        Metric(
            f"items_{name}_total",
            f"{help}, by any client, as this process saw.",
            [(labels, count[index]) for labels, count in counts],
            "counter",
        )
        for index, (name, help) in enumerate(zip(("added", "done"), helps, strict=True))
    ]


class Scraper:
    """Reads the metrics of `rwq check --format prometheus`, and whether the server takes writes.

    It has a connection of its own, so that another thread may use it with the queues of the main
    thread.
    """

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection.for_other_thread(reply_timeout_s=_REPLY_TIMEOUT_S)

    def metrics(self, queues: Sequence[Queue]) -> list[Metric]:
        names = [queue.name for queue in queues]
        checks: list[Check] = []
        servers: list[ServerStatus] = []
        with suppress(ServerError):
            servers = server_statuses(self._connection)
        for name in names if servers else ():
            try:
                checks.append(thresholds.check(Queue(self._connection, name), {}))
            except (Unreachable, ConnectionLost):
                break
            except ServerError:
                continue
        return [*server_metrics(servers), *queue_metrics(names, checks)]

    def refusal(self) -> str | None:
        """Why the server refuses writes; None if it does not, or does not say."""
        with suppress(ServerError):
            for server in server_statuses(self._connection):
                if reason := refusal_in_words(server):
                    return f"{server.node}: {reason}" if server.node else reason
        return None
