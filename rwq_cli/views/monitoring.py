"""Checks for monitoring: the line of a Nagios plugin, and the text format of Prometheus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rwq_cli.core.errors import ConnectionLost, ServerError, Unreachable
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.thresholds import (
    Check,
    Evaluation,
    Level,
    Limits,
    Measure,
    check as check_queue,
)
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.exposition import Metric
from rwq_cli.output.field import ID, Field, Fields, field
from rwq_cli.views.counts import ITEMS, OTHERS

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# Prometheus waits for 10 s by default.
_REPLY_TIMEOUT_S = 4.0
# The measures that are in the line even without limits.
_USUAL = (Measure.WAITING, Measure.AGE, Measure.ABANDONED)


def nagios_line(check: Check, *, is_absent: bool = False) -> str:
    """The line of a monitoring plugin: level, measures, and performance data after a bar."""
    # Performance data is `name=value;warn;critical;least`.
    words = [
        _in_words(check, each)
        for each in check.evaluations
        if each.measure in _USUAL or each.limits != Limits()
    ]
    absent = "no such queue, or it is empty; " if is_absent else ""
    line = _line(check.level, f"{escaped(check.counts.queue)}: {absent}{', '.join(words)}")
    return f"{line} | {' '.join(_all_data(check, ''))}\n"


def nagios_lines(unread: Mapping[bytes, str], checks: Sequence[Check], level: Level) -> str:
    # Monitoring does not read stderr.
    reasons = dict.fromkeys(unread.values())
    parts = [
        f"{', '.join(escaped(queue) for queue in unread if unread[queue] == reason)}: {reason}"
        for reason in reasons
    ]
    alerting = len(unread)
    for check in checks:
        alerts = [_in_words(check, each) for each in _alerting(check)]
        if alerts:
            parts.append(f"{escaped(check.counts.queue)}: {', '.join(alerts)}")
            alerting += 1
    total = len(unread) + len(checks)
    count = f"{total:,} queue" + ("" if total == 1 else "s")
    parts.append(f"{total - alerting:,} of {count} OK" if parts else f"{count} OK")
    if not total:
        # A pattern may be mistyped, and monitoring does not read stderr.
        parts = ["no queues, or all are empty"]
    line = _line(level, "; ".join(parts))
    data = [each for check in checks for each in _all_data(check, f"{_in_label(check)}:")]
    return f"{line} | {' '.join(data)}\n" if data else f"{line}\n"


def _in_label(check: Check) -> str:
    """A queue's name in the label of performance data, which is quoted."""
    text = escaped(check.counts.queue)
    return text.replace("'", "''").replace("=", "\\x3d").replace("|", "\\x7c")


def unknown_line(reason: str) -> str:
    return f"{_line(Level.UNKNOWN, reason)}\n"


def _line(level: Level, text: str) -> str:
    # A bar would begin the performance data, and cannot be escaped.
    return f"RWQ {level.value} - {text}".replace("|", "\\x7c")


def _alerting(check: Check) -> list[Evaluation]:
    return [each for each in check.evaluations if each.level is not Level.OK]


def _in_words(check: Check, each: Evaluation) -> str:
    """A measure with the limit that it exceeds; an age that a restart has cut short says so."""
    show = human.duration if each.measure is Measure.AGE else _count
    value = "unknown" if each.value is None else show(each.value)
    text = f"oldest {value}" if each.measure is Measure.AGE else f"{value} {each.measure}"
    if each.measure is Measure.AGE and check.server_up_s is not None:
        text = f"age>={each.value}s, server up {check.server_up_s}s"
    limit = each.limits.critical if each.level is Level.CRITICAL else each.limits.warn
    if limit is None or each.level not in (Level.WARNING, Level.CRITICAL):
        return text
    return f"{text} (above {show(limit)})"


def _count(number: float) -> str:
    return human.count(int(number))


def _all_data(check: Check, prefix: str) -> Iterator[str]:
    """The performance data of a queue, with this prefix before each measure's name."""
    for each in check.evaluations:
        if each.value is not None or each.limits != Limits():
            yield _as_data(each, f"'{prefix}{each.measure}'" if prefix else each.measure)


def _as_data(each: Evaluation, label: str) -> str:
    if each.value is None:
        return f"{label}=U"
    unit = "s" if each.measure is Measure.AGE else ""
    limits = (each.limits.warn, each.limits.critical, 0)
    texts = ("" if limit is None else f"{limit:.10g}" for limit in limits)
    return f"{label}={each.value}{unit};{';'.join(texts)}"


def _measure(measure: Measure) -> Field[Check]:
    known = ", if there is a limit for it" if measure is Measure.ORPHANED else ""
    name = "oldest_waiting_seconds" if measure is Measure.AGE else measure.value
    return field(name, lambda check: check.by_measure[measure].value, f"as in the counts{known}")


CHECK_FIELDS: Fields[Check] = Fields(
    "A check",
    field("queue", "counts.queue", "the queue's name", ID),
    field("status", "level", "`OK`, `WARNING`, `CRITICAL` or `UNKNOWN`"),
    *map(_measure, Measure),
    field(
        "alerts",
        lambda check: [f"{each.level}: {_in_words(check, each)}" for each in _alerting(check)],
        "each limit that is exceeded, or cannot be checked, as `LEVEL: text`",
    ),
    field(
        "server_up_seconds",
        "server_up_s",
        "if the age is cut short by a restart of the server: how long ago that was; else null",
    ),
)


def queue_metrics(queues: Sequence[bytes], checks: Sequence[Check]) -> list[Metric]:
    counts = [check.counts for check in checks]
    readable = {each.queue for each in counts}
    up = [(queue, int(queue in readable)) for queue in queues]
    ages = [(check.counts.queue, check.by_measure[Measure.AGE].value) for check in checks]
    metrics = [
        _by_queue("up", "Whether the queue could be read.", up),
        _by_queue("oldest_waiting_seconds", "Seconds since the next item was last used.", ages),
    ]
    for suffix, helps in (("_items", ITEMS), ("", OTHERS)):
        for name, help in helps.items():
            values = [(each.queue, getattr(each, name)) for each in counts]
            text = f"{help[0].upper()}{help[1:]}.".replace("`", "")
            metrics.append(_by_queue(name + suffix, text, values))
    return metrics


def _by_queue(name: str, help: str, values: Sequence[tuple[bytes, int | None]]) -> Metric:
    return Metric(name, help, [({"queue": queue}, value) for queue, value in values])


def queue_scraper(connection: "Connection") -> Callable[[Sequence[Queue]], list[Metric]]:
    """A function that returns the metrics of `rwq check --format prometheus`."""
    # It has a connection of its own, so that another thread may call it with the queues of the main
    # thread.
    own = connection.for_other_thread(reply_timeout_s=_REPLY_TIMEOUT_S)

    def read(queues: Sequence[Queue]) -> list[Metric]:
        names = [queue.name for queue in queues]
        checks: list[Check] = []
        for name in names:
            try:
                checks.append(check_queue(Queue(own, name), {}))
            except (Unreachable, ConnectionLost):
                break
            except ServerError:
                continue
        return queue_metrics(names, checks)

    return read
