"""Checks for monitors: the one line of a Nagios plugin, and the text format of Prometheus."""

from collections.abc import Sequence
from typing import Any

from rwq_cli.core.inspect.thresholds import Check, Evaluation, Level, Limits, Measure, evaluate
from rwq_cli.core.model import Counts
from rwq_cli.exit_codes import MonitoringStatus
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Records, View

# What the line says even where no limit asks for it.
_ALWAYS_SAID = (Measure.WAITING, Measure.AGE, Measure.ABANDONED)

_METRICS = (
    ("rwq_waiting_items", "waiting", "Items waiting to be leased."),
    ("rwq_processing_items", "processing", "Entries of the processing list."),
    ("rwq_leased_items", "leased", "Items in processing with a lease that ends."),
    ("rwq_held_items", "held", "Items with a lease that never ends."),
    ("rwq_abandoned_items", "abandoned", "Items in processing without a lease."),
    ("rwq_delayed_items", "delayed", "Items for later, due ones included."),
    ("rwq_due_items", "due", "Delayed items whose time has come."),
    ("rwq_buried_items", "buried", "Items that were put away."),
    ("rwq_returned_items", "returned", "Items that a clean brought back at least once."),
    ("rwq_orphaned_items", "orphaned", "Items in no list without a lease."),
    ("rwq_unlisted_items", "unlisted", "Items in no list with a lease that ends."),
    ("rwq_duplicated_items", "duplicated", "Items in the lists more than once."),
    ("rwq_ghosts", "ghosts", "Entries of a list without an item."),
    ("rwq_stray_leases", "stray_leases", "Leases without an item."),
    ("rwq_wrong_types", "wrong_types", "Keys of items and leases of another type."),
    ("rwq_returns", "returns", "How often cleans brought items back."),
    ("rwq_results", "results", "Outcomes that are kept of completed items."),
)


def check_report(checks: Sequence[Check], text: str, level: Level, *, one: bool) -> Records[Check]:
    """The report of `rwq check`.

    Args:
        checks: The queues that could be read.
        text: What a monitor reads.
        level: The worst of the levels.
        one: Whether one queue was asked for.
    """
    sample = evaluate(Counts(b"", 0, 0, 0, 0), {})
    return Records(
        view=View(check_fields, lambda check: check.counts.queue, sample),
        records=checks,
        is_one=one,
        text=text,
        status=lambda: MonitoringStatus[level.value],
    )


def nagios_line(check: Check) -> str:
    """The line of a monitoring plugin: the level, in words what was found, and after a bar the
    same as performance data, `name=value;warn;critical;least`."""
    said = [_in_words(each) for each in check.evaluations if _is_said(each)]
    data = [
        _as_data(each) for each in check.evaluations if each.value is not None or _limited(each)
    ]
    line = _line(check.level, f"{escaped(check.counts.queue)}: {', '.join(said)}")
    return f"{line} | {' '.join(data)}\n"


def unknown_line(why: str) -> str:
    """The line where nothing could be found out.

    Args:
        why: The reason, safe to show.
    """
    return f"{_line(Level.UNKNOWN, why)}\n"


def _line(level: Level, text: str) -> str:
    # A bar would begin the performance data, and nothing escapes one.
    return f"RWQ {level.value} - {text}".replace("|", "\\x7c")


def _limited(each: Evaluation) -> bool:
    return each.limits != Limits()


def _is_said(each: Evaluation) -> bool:
    return each.measure in _ALWAYS_SAID or _limited(each)


def _in_words(each: Evaluation) -> str:
    if each.measure is Measure.AGE:
        said = f"oldest {'unknown' if each.value is None else human.duration(each.value)}"
    else:
        said = f"{'unknown' if each.value is None else human.count(each.value)} {each.measure}"
    return f"{said} ({above})" if (above := _above(each)) else said


def _above(each: Evaluation) -> str:
    """The limit that was passed, in words; empty for none."""
    limit = each.limits.critical if each.level is Level.CRITICAL else each.limits.warn
    if limit is None or each.level not in (Level.WARNING, Level.CRITICAL):
        return ""
    is_age = each.measure is Measure.AGE
    return f"above {human.duration(limit) if is_age else human.count(int(limit))}"


def _as_data(each: Evaluation) -> str:
    if each.value is None:
        return f"{each.measure}=U"
    unit = "s" if each.measure is Measure.AGE else ""
    limits = (each.limits.warn, each.limits.critical, 0)
    told = ";".join("" if limit is None else f"{limit:.10g}" for limit in limits)
    return f"{each.measure}={each.value}{unit};{told}"


def check_fields(check: Check) -> dict[str, Any]:
    """A check as JSON; null is unknown."""
    return {
        **bytes_fields("queue", check.counts.queue),
        "status": check.level.value,
        "waiting": check[Measure.WAITING].value,
        "oldest_waiting_seconds": check[Measure.AGE].value,
        "abandoned": check[Measure.ABANDONED].value,
        "processing": check[Measure.PROCESSING].value,
        "delayed": check[Measure.DELAYED].value,
        "buried": check[Measure.BURIED].value,
        "orphaned": check[Measure.ORPHANED].value,
        "alerts": [
            f"{each.level.value}: {_in_words(each)}"
            for each in check.evaluations
            if each.level is not Level.OK
        ],
    }


def prometheus_text(queues: Sequence[bytes], found: Sequence[Check]) -> str:
    """The text exposition format: every number of every queue, and which queues could be read.

    Args:
        queues: The queues that were asked for.
        found: Those that could be read.
    """
    known = {check.counts.queue for check in found}
    lines = _metric("rwq_up", "Whether the queue could be read.")
    lines += [f"rwq_up{{{_label(queue)}}} {int(queue in known)}" for queue in queues]
    ages = [(check.counts.queue, check[Measure.AGE].value) for check in found]
    lines += _samples("rwq_oldest_waiting_seconds", "How long the next item was not used.", ages)
    for metric, field, help_text in _METRICS:
        values = [(check.counts.queue, getattr(check.counts, field)) for check in found]
        lines += _samples(metric, help_text, values)
    return "".join(f"{line}\n" for line in lines)


def _samples(name: str, help_text: str, values: list[tuple[bytes, int | None]]) -> list[str]:
    samples = [f"{name}{{{_label(queue)}}} {value}" for queue, value in values if value is not None]
    return [*_metric(name, help_text), *samples] if samples else []


def _metric(name: str, help_text: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]


def _label(queue: bytes) -> str:
    text = escaped(queue).replace("\\", "\\\\").replace('"', '\\"')
    return f'queue="{text}"'
