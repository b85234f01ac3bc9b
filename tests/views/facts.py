"""Made facts: an instance of any record of the product, by the types of its fields.

At step 0, everything is absent or 0; at 1, all is 1 or true; at 2 and 3, every field has a value
that no other one has, at 3 a large one, and text that is not ASCII.
"""

import importlib
import pkgutil
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Union, get_args, get_origin, get_type_hints

import rwq_cli
from rwq_cli.cli.reports import OUTCOME_FIELDS
from rwq_cli.commands import clean, context, diff, doctor, local, result, wait
from rwq_cli.contexts.config import Context
from rwq_cli.core.inspect import lookup
from rwq_cli.core.inspect.differences import Difference
from rwq_cli.core.inspect.history import HistoryEntry
from rwq_cli.core.inspect.lookup import ItemReport
from rwq_cli.core.inspect.results import Result, ResultKey
from rwq_cli.core.inspect.server_status import ServerAccess
from rwq_cli.core.inspect.thresholds import Check, Limits, Measure, Range, evaluate
from rwq_cli.core.items.results import ResultLookup, WaitResult
from rwq_cli.core.model import Counts, Event, Item, Lease, Outcome
from rwq_cli.core.repair.clean import CleanAction
from rwq_cli.core.repair.findings import Code, Finding
from rwq_cli.core.state.rules import Facts
from rwq_cli.local.server import LocalStatus
from rwq_cli.output.field import Fields
from rwq_cli.output.sections import Section
from rwq_cli.output.tally import OutcomeRecord
from rwq_cli.undo.catalog import UndoEntry
from rwq_cli.views import (
    counts,
    events,
    history,
    item_report,
    items,
    monitoring,
    undo_files,
    working,
)
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.work import notes
from rwq_cli.work.programs import Invocation

NOW_MS = 1_700_000_000_000
STEPS = range(4)


def made(kind: Any, step: int, name: str = "it", at: int = 0) -> Any:
    """Make a value of a type, for the field that has this name and place."""
    parts = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        if step == 0 and type(None) in parts:
            return None
        return made(next(part for part in parts if part is not type(None)), step, name, at)
    if kind is bool:
        return step == 1 or (step > 1 and bool((step + at) % 2))
    if kind in (int, float):
        number = kind([0, 1, 2 + at, 1_000_003 * (at + 1)][step])
        is_moment = name.endswith("_ms") and not name.startswith(("ttl", "lease", "step"))
        return number + NOW_MS * (is_moment and step > 0) + (0.25 * step if kind is float else 0)
    if kind in (str, bytes, Path):
        text = f"{name}-{step}" + "-é日" * (step == 3)
        # Bytes that are not UTF-8.
        return text.encode() + b"\xff" * (step == 3) if kind is bytes else kind(text)
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return {}
    if get_origin(kind) is not None:
        is_fixed = get_origin(kind) is tuple and ... not in parts
        kinds = parts if is_fixed else parts[:1] * min(step, 2)
        return tuple(made(part, step, f"{name}{i}", at + i) for i, part in enumerate(kinds))
    if issubclass(kind, Enum):
        return list(kind)[(step + at) % len(kind)]
    fields = getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", None)
    fields = fields or kind.__struct_fields__
    hints = get_type_hints(kind)
    return kind(**{n: made(hints[n], step, n, at + i) for i, n in enumerate(fields)})


def _each(kind: Any) -> list[Any]:
    return [made(kind, step) for step in STEPS]


def _rows(kind: Any) -> list[Any]:
    return [OutcomeRecord(b"jobs", what, step == 1) for step, what in enumerate(_each(kind))]


def _facts(**facts: Any) -> Facts:
    return Facts(**{"item_id": b"it", "has_data": True, "now_ms": NOW_MS, **facts})


LEASE, ENDLESS = Lease(b"rwq:ann@host:1", 61_000), Lease(b"worker-7", None)
GUARD = Lease(b"rwq-buried:it broke", None)
# In each state, and in more than one way.
FACTS = [
    *(_facts(in_main=number, returns=number or None) for number in (0, 1, 2)),
    *(_facts(in_processing=1, new_lease=lease) for lease in (None, LEASE, ENDLESS)),
    *(_facts(new_lease=lease, old_lease=LEASE) for lease in (None, LEASE, ENDLESS)),
    *(_facts(due_ms=at_ms, new_lease=GUARD) for at_ms in (NOW_MS + 60_000, NOW_MS - 60_000, 1e18)),
    _facts(buried_ms=NOW_MS - 3_600_000, new_lease=GUARD, returns=2, in_cleaning=1),
    *(_facts(has_data=False, **more) for more in ({}, {"in_main": 1}, {"new_lease": LEASE})),
    *(_facts(has_data=False, new_lease=ENDLESS), _facts(wrong_types={b"jobs:item:it": "hash"})),
]
LINES = CommandLines(" -c dev", "redis-cli -n 2", " --to-context dev")


def _shown() -> Iterator[item_report.Explanation]:
    for number, facts in enumerate(FACTS):
        step, places = number % 4, [*range(number, number + facts.in_main)]
        report = ItemReport(facts, places, [number % 3] * facts.in_processing)
        data = (None, None, b"one\n two\x1b[2J\n\nfour", b'{"n": [1.10, null]}')[step]
        item = lookup.item_from(b"jobs", facts, report.position)
        item = item._replace(payload_bytes=step, preview=b"{}", data=data, idle_s=step or None)
        key = ResultKey(b"it", facts.has_data, "result", made(Result, step)) if step else None
        forecast = made(lookup.Forecast, step) if step != 1 else None
        yield item_report.Explanation(item, report, LINES, key, forecast)


def _contexts() -> list[context.Record]:
    rows = [made(Context, step) for step in STEPS]
    return [context.context_record(row, rows[1].name) for row in rows]


def _checked() -> list[context.Record]:
    denied: tuple[list[dict[str, str]] | None, ...]
    denied = (None, [], [{"command": "rm", "reason": "no"}] * 2, None)
    return [
        {
            **made(ServerAccess, step)._asdict(),
            "server": "unix:/s",
            "context": made(str | None, step, "context"),
            "queue": made(bytes | None, step, "queue"),
            "denied": denied[step],
            **{f"no_{name}_because": made(str | None, step, name) for name in ("writes", "undo")},
        }
        for step in STEPS
    ]


def _findings() -> Iterator[SimpleNamespace]:
    for number, code in enumerate(Code):
        step = number % 4
        finding = replace(made(Finding, step), code=code, reason=None)
        yield doctor._record(
            None if step == 1 else b"jobs",
            finding,
            LINES,
            fix=step > 1,
            dry_run=step == 2,
            has_evicted=bool(number % 2),
        )


def _checks() -> Iterator[Check]:
    inside = Range(1, 9, is_inside=True)
    limits = (Limits(), Limits(Range(2, 7)), Limits(Range(), Range(0, 9)), Limits(inside))
    for step in STEPS:
        by_measure = {measure: limits[(step + at) % 4] for at, measure in enumerate(Measure)}
        check = evaluate(made(Counts, step), by_measure, stalled=90 * step or None)
        yield check._replace(server_up_s=90 if step == 1 else None, is_missing=step == 2)


def _plans() -> Iterator[working.Planned]:
    for step in STEPS[1:]:
        drawn, is_bad = [made(Item, step, at=at) for at in range(step)], step == 1
        run = None if is_bad else made(Invocation, step)
        yield working.Planned(drawn, run, "it is no JSON" if is_bad else None)


def _history(step: int) -> history.QueueHistory:
    entries = [made(HistoryEntry, at, at=at) if at != 2 else None for at in STEPS[: step + 1]]
    return history.QueueHistory(b"jobs", 60_000 * (step + 1), entries)


def _no_sections(_: Any) -> list[Section]:
    return []


# By the list of fields: records of each kind, and how one is described.
Records = tuple[Fields[Any], list[Any], Callable[[Any], Sequence[Section]]]
RECORDS: dict[str, Records] = {
    "item": (items.ITEM_FIELDS, _each(Item), _no_sections),
    "shown": (item_report.EXPLANATION_FIELDS, [*_shown()], item_report.show_sections),
    "counts": (counts.COUNT_FIELDS, _each(Counts), counts.count_sections),
    "event": (events.EVENT_FIELDS, _each(Event), _no_sections),
    "history": (history.HISTORY_FIELDS, _each(HistoryEntry), _no_sections),
    "check": (monitoring.CHECK_FIELDS, [*_checks()], _no_sections),
    "undo": (undo_files.UNDO_FIELDS, _each(UndoEntry), _no_sections),
    "pruned": (undo_files.PRUNED_FIELDS, _rows(undo_files.Pruned), _no_sections),
    "work": (working.EVENT_FIELDS, _rows(notes.Event), _no_sections),
    "plan": (working.PLAN_FIELDS, [*_plans()], working.plan_sections),
    "outcome": (OUTCOME_FIELDS, _rows(Outcome), _no_sections),
    "difference": (diff.DIFFERENCE_FIELDS, _each(Difference), _no_sections),
    "finding": (doctor.FINDING_FIELDS, [*_findings()], lambda row: [doctor._section(row)]),
    "result": (
        result.RESULT_FIELDS,
        _each(ResultLookup),
        lambda row: result._sections(row, lambda: NOW_MS),
    ),
    "clean": (clean.CLEAN_FIELDS, _rows(CleanAction), _no_sections),
    "local": (local.LOCAL_FIELDS, _each(LocalStatus), local.local_sections),
    "context": (context.CONTEXT_FIELDS, _contexts(), context.context_sections),
    "checked": (context.CHECKED_FIELDS, _checked(), context.checked_sections),
    "wait": (wait.WAIT_FIELDS, _each(WaitResult), wait._sections),
}


def in_product(kind: type) -> dict[int, Any]:
    """Every object of a kind that a module of the product has, by its identity."""
    names = [info.name for info in pkgutil.walk_packages(rwq_cli.__path__, "rwq_cli.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return {
        id(value): (module.__name__, name, value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, kind)
    }
