"""Everything about an item: `rwq show`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rwq_cli.core.inspect.forecast import Forecast
from rwq_cli.core.inspect.report import ItemReport
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.state.rules import is_guard
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.sections import COMMAND_STYLE, Row, Section
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.explanations import Explanation, explain
from rwq_cli.views.items import ITEM_FIELDS, preview_text, state_style


@dataclass(frozen=True)
class Shown:
    """Everything that is shown about one ID.

    Attributes:
        item: The item.
        report: The facts.
        forecast: When it will be leased; None without `--eta`, or if it is not waiting.
        result: The result under this ID; None if there is none.
        wrong_result: The result's key with its type, if that is the wrong one.
        lines: Makes the command lines.
    """

    item: Item
    report: ItemReport
    forecast: Forecast | None = None
    result: Result | None = None
    wrong_result: Mapping[bytes, str] = field(default_factory=dict)
    lines: CommandLines = field(default_factory=CommandLines)

    @property
    def wrong_types(self) -> dict[bytes, str]:
        """Its keys of the wrong type, with their types."""
        return {**self.report.facts.wrong_types, **self.wrong_result}

    @cached_property
    def explanation(self) -> Explanation:
        """What the facts mean, and what to do."""
        return explain(
            self.item.queue,
            self.report,
            self.forecast,
            self.result,
            tuple(self.wrong_result),
            self.lines,
        )


def _item(shown: Shown) -> Item:
    return shown.item


def _facts(name: str, get: Callable[[Shown], object], help: str) -> Field[Shown]:
    return Field(f"facts.{name}", get, help)


def _of_result(name: str, get: Callable[[Result], object], help: str) -> Field[Shown]:
    return Field(
        f"result.{name}", lambda shown: None if shown.result is None else get(shown.result), help
    )


RESULT_HELP = {
    "status": "`completed` or `rejected`",
    "completed_ms": "when the item was completed",
    "bytes": "the size of the result; null = none was given",
    "ttl_ms": "how long the result is kept; null = no expiry",
}

SHOWN_FIELDS: Fields[Shown] = Fields(
    "An item, explained",
    *(field.within(_item) for field in ITEM_FIELDS.all),
    Field("meaning", lambda shown: shown.explanation.meaning, "the state in a sentence"),
    Field("next", lambda shown: shown.explanation.next, "what will happen next, in a sentence"),
    Field("commands", lambda shown: list(shown.explanation.commands), "command lines to run next"),
    Field(
        "next_in_seconds",
        lambda shown: shown.explanation.next_in_s,
        "until something happens without help; null if nothing will",
    ),
    Field(
        "findings",
        lambda shown: [code.value for code in shown.explanation.findings],
        "what `doctor` would report, by its codes",
    ),
    Field("cause", lambda shown: " ".join(shown.explanation.causes) or None, "of the findings"),
    Field("cure", lambda shown: " ".join(shown.explanation.cures) or None, "of the findings"),
    Field(
        "places_per_second",
        lambda shown: shown.forecast.rate_per_s if shown.forecast else None,
        "how fast the item moves up (`--eta`)",
    ),
    Field(
        "result",
        lambda shown: shown.result,
        "the result kept under this ID; null if there is none",
        is_object=True,
    ),
    _of_result("status", lambda result: result.status.value, RESULT_HELP["status"]),
    _of_result("completed_ms", lambda result: result.completed_ms, RESULT_HELP["completed_ms"]),
    _of_result("bytes", lambda result: result.result_bytes, RESULT_HELP["bytes"]),
    _of_result("ttl_ms", lambda result: result.ttl_ms, RESULT_HELP["ttl_ms"]),
    Field("facts", lambda shown: shown.report, "what was read", is_object=True),
    _facts("data", lambda shown: shown.report.facts.has_data, "whether the data key exists"),
    _facts("in_main", lambda shown: shown.report.facts.in_main, "how often it is in the main list"),
    _facts(
        "in_processing",
        lambda shown: shown.report.facts.in_processing,
        "how often it is in processing",
    ),
    _facts(
        "in_cleaning",
        lambda shown: shown.report.facts.in_cleaning,
        "how often it is in the list of a cleaner of redis-work-queue 0.1",
    ),
    _facts(
        "data_key",
        lambda shown: QueueKeys(shown.item.queue).item(shown.report.facts.item_id),
        "the name of the data key",
    ),
    _facts(
        "main_places",
        lambda shown: list(shown.report.main_places),
        "its places in the main list, 0 = next to be leased",
    ),
    _facts(
        "processing_places",
        lambda shown: list(shown.report.processing_places),
        "its places in processing, 0 = leased longest ago",
    ),
    _facts(
        "lease_keys",
        lambda shown: [escaped(key) for key in shown.report.lease_keys],
        "the names of the lease keys that exist",
    ),
    _facts(
        "leases",
        lambda shown: [
            {"key": escaped(key), "holder": escaped(lease.holder), "ttl_ms": lease.ttl_ms}
            for key, lease in shown.report.leases
        ],
        "those that hold a lease: `key`, `holder`, `ttl_ms`",
    ),
    _facts(
        "wrong_types",
        lambda shown: [
            {"key": escaped(key), "type": kind} for key, kind in shown.wrong_types.items()
        ],
        "keys of the wrong type: `key`, `type`",
    ),
)


def show_sections(record: Shown) -> list[Section]:
    item, explanation = record.item, record.explanation
    rows: list[Row] = [
        ("queue", escaped(item.queue), None),
        ("state", item.state.value, state_style(item.state) or "bold"),
        ("", explanation.meaning, None),
        ("next", explanation.next, None),
    ]
    # The meaning has already explained the state.
    also = [
        cause
        for code, cause in zip(explanation.findings, explanation.causes, strict=True)
        if code.value != item.state.value
    ]
    cures = [cure for cure in explanation.cures if cure != explanation.next]
    commands = "result" if item.state is State.GONE else "commands"
    rows += [("also", cause, "red") for cause in also]
    rows += _labelled("cure", cures, None)
    rows += _labelled(commands, explanation.commands, COMMAND_STYLE)
    sections = [Section(escaped(item.item_id), rows)]
    if record.wrong_types:
        wrong = [(escaped(key), f"is a {kind}", "red") for key, kind in record.wrong_types.items()]
        sections.append(Section("Keys of the wrong type", wrong))
    sections.append(Section("Facts", _fact_rows(record)))
    if item.data is not None:
        sections.append(Section("Data", [("", _pretty(item.data), None)]))
    elif item.preview is not None:
        cut = "" if item.payload_bytes == len(item.preview) else " …"
        sections.append(Section("Data", [("", (preview_text(item) or "") + cut, None)]))
    return sections


def _labelled(label: str, values: Iterable[str], style: str | None) -> list[Row]:
    """Rows under one label."""
    return [("" if number else label, value, style) for number, value in enumerate(values)]


def _fact_rows(record: Shown) -> list[Row]:
    item, report, facts = record.item, record.report, record.report.facts
    data = "none"
    if facts.has_data:
        size = "" if item.payload_bytes is None else f"{human.size(item.payload_bytes)}, "
        used = "last use unknown" if item.idle_s is None else f"last used {human.ago(item.idle_s)}"
        data = f"{size}{used}"
    main, processing = _times(facts.in_main), _times(facts.in_processing)
    if report.position is not None:
        ahead = report.position
        main += f", {human.count(ahead)} ahead of it" if ahead else ", next to be leased"
    if report.processing_places:
        older = report.processing_places[0]
        processing += f", {human.count(older)} older than it" if older else ", the oldest"
    rows: list[Row] = [
        ("data", data, None),
        ("main list", main, None),
        ("processing list", processing, None),
    ]
    if facts.in_cleaning:
        rows.append(("cleaning list", _times(facts.in_cleaning), None))
    rows.append(("lease", _effective_lease(report), None))
    if facts.lease is not None:
        leases = dict(report.leases)
        differ = len({lease.holder for lease in leases.values()}) > 1
        for key in report.lease_keys:
            own = f": {_lease(leases[key], facts.now_ms)}" if differ and key in leases else ""
            rows.append(("lease key", escaped(key) + own, "dim"))
    if facts.due_ms is not None:
        rows.append(("due", _time(facts.due_ms, item.due_ms, facts.now_ms), None))
    if facts.buried_ms is not None:
        rows.append(("buried", _time(facts.buried_ms, item.buried_ms, facts.now_ms), None))
    if item.reason is not None:
        rows.append(("reason", escaped(item.reason), None))
    if facts.returns is not None:
        times = "once" if facts.returns == 1 else f"{human.count(facts.returns)} times"
        rows.append(("returns", f"{times}, by cleans or after failed attempts", None))
    if record.result is not None:
        rows.append(("result", _result_text(record.result, item.state, facts.now_ms), None))
    return rows


def _time(score: float, unix_ms: int | None, now_ms: int) -> str:
    """A score of a sorted set."""
    if unix_ms is None:
        return f"{score:g}, which is not a time"
    return human.when(unix_ms, now_ms)


def _effective_lease(report: ItemReport) -> str:
    lease, types = report.facts.lease, report.facts.wrong_types
    if lease is None:
        return "none"
    unreadable = [key for key in report.lease_keys if key in types]
    if unreadable and not lease.holder:
        return f"unknown: {escaped(unreadable[0])} is a {types[unreadable[0]]}"
    return _lease(lease, report.facts.now_ms)


def _lease(lease: Lease, now_ms: int) -> str:
    left = "no expiry"
    if lease.ttl_ms is not None:
        left = f"ends {human.when(now_ms + lease.ttl_ms, now_ms)}"
    if is_guard(lease):
        return f"none; guarded, {left}"
    return f"{left}, held by {escaped(lease.holder) or 'an unknown holder'}"


def _result_text(result: Result, state: State, now_ms: int) -> str:
    """A result, and which item it belongs to."""
    whose = ", of an earlier item with this ID" if state.has_data else ""
    given = "none given" if result.result_bytes is None else human.size(result.result_bytes)
    expiry = "no expiry"
    if result.ttl_ms is not None:
        expiry = f"expires in {human.duration(result.ttl_ms / 1000)}"
    completed = human.when(result.completed_ms, now_ms)
    return f"{result.status.value} {completed}, {given}, {expiry}{whose}"


def _times(count: int) -> str:
    return {0: "no", 1: "yes"}.get(count, f"{human.count(count)} times")


def _pretty(data: bytes) -> str:
    """JSON objects and arrays indented; anything else escaped, line by line."""
    if data[:1] in (b"{", b"["):
        try:
            from msgspec.json import format as reformat

            # This keeps numbers and keys as they were written.
            data = reformat(data, indent=2)
        except (ValueError, RecursionError):
            pass
    return "\n".join(map(escaped, data.split(b"\n")))
