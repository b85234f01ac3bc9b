"""Everything about an item: `rwq show`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from rwq_cli.core.batches import BLOCK_IDS, Flush, in_batches
from rwq_cli.core.inspect import lookup
from rwq_cli.core.inspect.lookup import Forecast, ItemReport
from rwq_cli.core.inspect.results import KIND_NONE, KIND_RESULT, Result, ResultKey
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.findings import Code, findings_about
from rwq_cli.core.state.rules import Facts, is_guard, transit_of
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Fields, attribute, field
from rwq_cli.output.sections import COMMAND_STYLE, Line, Section
from rwq_cli.views.command_lines import CommandLines, shell_word
from rwq_cli.views.items import ITEM_FIELDS, preview_text, state_style
from rwq_cli.views.meanings import REMEDIES, STATES

_PAGE_IDS = BLOCK_IDS // 2


class Next(NamedTuple):
    text: str
    in_s: float | None = None


@dataclass(frozen=True)
class Explanation:
    item: Item
    report: ItemReport
    lines: CommandLines
    result_key: ResultKey | None = None
    forecast: Forecast | None = None

    @property
    def result(self) -> Result | None:
        return self.result_key and self.result_key.result

    @property
    def keys(self) -> QueueKeys:
        return QueueKeys(self.item.queue)

    @cached_property
    def wrong_types(self) -> dict[bytes, str]:
        types = dict(self.report.facts.wrong_types)
        if self.result_key and self.result_key.kind not in (KIND_NONE, KIND_RESULT):
            types[self.keys.result(self.item.item_id)] = self.result_key.kind
        return types

    @cached_property
    def leases(self) -> dict[bytes, Lease]:
        facts, item_id = self.report.facts, self.item.item_id
        new, old = self.keys.lease(item_id), self.keys.old_lease(item_id)
        leases = {new: facts.new_lease, old: facts.old_lease}
        return {key: lease for key, lease in leases.items() if lease is not None}

    @cached_property
    def findings(self) -> list[Code]:
        findings = findings_about(self.report.facts)
        return [*dict.fromkeys([*findings, *[Code.WRONG_TYPE] * bool(self.wrong_types)])]

    @property
    def meaning(self) -> str:
        if self.result is not None and self.item.state is State.GONE:
            return f"The item no longer exists: it was {self.result.status.value}."
        return STATES[self.item.state].meaning

    @cached_property
    def next(self) -> Next:
        facts = self.report.facts
        left_s = None
        if facts.lease is not None and facts.lease.ttl_ms is not None:
            left_s = facts.lease.ttl_ms / 1000
        ends = f"the lease ends in {human.duration(left_s)}"
        match facts.state:
            case State.WAITING:
                return _turn(self.report.position, self.forecast)
            case State.DELAYED | State.DUE:
                return _due(facts)
            case State.STRAY_LEASE if left_s is None:
                return Next("Nothing: it has no expiry.")
            case State.LEASED:
                text = (
                    f"Unless it is completed or the lease is renewed, {ends}; then the item is "
                    "abandoned, and the next light clean returns it."
                )
            case State.UNLISTED:
                text = f"T{ends[1:]}; then it is orphaned, and a deep clean returns it."
            case State.STRAY_LEASE:
                text = f"T{ends[1:]}."
            case State.BURIED if transit_of(facts.reason):
                return Next("Nothing, until the same rwq mv is run again, which finishes it.")
            case state:
                return Next(STATES[state].next_sentence)
        return Next(text, left_s)

    @property
    def commands(self) -> list[str]:
        """Command lines to run next; what removes an item is never offered first."""
        item, lines, names = self.item, self.lines, (self.item.queue, self.item.item_id)
        lease, verbs = self.report.facts.lease, STATES[item.state].verbs
        if transit := transit_of(item.reason):
            verbs = ()
        elif item.state is State.WAITING and self.report.position:
            verbs = ("release --front", "complete")
        elif item.state is State.STRAY_LEASE and lease is not None and not lease.ends:
            verbs = ("doctor --fix",)
        elif item.state is State.GONE and self.result is not None:
            verbs = ("result",)
        return [
            *([lines.of_transit(transit, *names)] if transit else ()),
            *(lines.of_item(verb, *names) for verb in verbs),
            *(f"{lines.redis_cli} TYPE {shell_word(key)}" for key in self.wrong_types),
        ]


def read_explanations(
    queue: WorkQueue,
    ids: Iterable[bytes | Flush],
    lines: CommandLines,
    note: Callable[[str], object],
    *,
    data: bool = False,
    sizes: bool = False,
    eta_s: float | None = None,
) -> Iterator[Explanation]:
    """Read everything that is shown of each ID, a page at a time."""
    # `data` reads whole payloads, and `sizes` sizes and previews even if that resets idle times;
    # `eta_s` is how long to watch the queue for a forecast. Each page of many IDs walks over the
    # lists. Whole payloads are kept for a page.
    for page in in_batches(ids, later_max=0 if data else _PAGE_IDS):
        reports = lookup.inspect_items(queue, page)
        items, results = lookup.describe(queue, reports, data=data, sizes=sizes)
        if results is None:
            note("rwq: this user may not read results; none are shown")
        none = [None] * len(page)
        forecasts = none if eta_s is None else lookup.forecast(queue, reports, sample_s=eta_s)
        for item, report, key, forecast in zip(
            items, reports, results or none, forecasts, strict=True
        ):
            yield Explanation(item, report, lines, key, forecast)


def _turn(position: int | None, forecast: Forecast | None) -> Next:
    turn_in_s = forecast.turn_in_s if forecast else None
    if not position:
        return Next("It is the next to be leased.", turn_in_s)
    items = f"{human.count(position)} items" if position > 1 else "item"
    text = f"It is leased after the {items} ahead of it"
    if turn_in_s is not None:
        return Next(f"{text}, in about {human.duration(turn_in_s)} at the present rate.", turn_in_s)
    return Next(f"{text}{'; it did not move up while the queue was watched' if forecast else ''}.")


def _due(facts: Facts) -> Next:
    assert facts.due_ms is not None
    if facts.has_invalid_score:
        return Next("It is never due: its score is not a time.")
    # A score may be far below 0.
    ahead_s = max((facts.due_ms - facts.now_ms) / 1000, -facts.now_ms / 1000)
    due = f"is due in {human.duration(ahead_s)}; then"
    if ahead_s <= 0:
        due = f"has been due for {human.duration(-ahead_s)}:"
    text = (
        f"It {due} the next rwq lease, work, wait or clean promotes it; failing that, any "
        "worker's deep clean returns it once its guard has expired."
    )
    return Next(text, ahead_s if facts.state is State.DELAYED else None)


KEPT_FIELDS = (
    field("status", "result.status", "`completed` or `rejected`"),
    field("completed_ms", "result.completed_ms", "when the item was completed"),
    field("bytes", "result.result_bytes", "the size of the result; null = none was given"),
    field("ttl_ms", "result.ttl_ms", "how long the result is kept; null = no expiry"),
)


def _lease_objects(explained: Explanation) -> list[dict[str, object]]:
    return [
        {"key": escaped(key), "holder": escaped(lease.holder), "ttl_ms": lease.ttl_ms}
        for key, lease in explained.leases.items()
        if key not in explained.wrong_types
    ]


_CLEANING = "how often it is in the list of a cleaner of redis-work-queue 0.1"
_FACTS: Sequence[tuple[str, str | Callable[[Explanation], object], str]] = (
    ("data", "report.facts.has_data", "whether the data key exists"),
    ("in_main", "report.facts.in_main", "how often it is in the main list"),
    ("in_processing", "report.facts.in_processing", "how often it is in processing"),
    ("in_cleaning", "report.facts.in_cleaning", _CLEANING),
    ("data_key", lambda s: s.keys.item(s.item.item_id), "the name of the data key"),
    ("main_places", "report.main_places", "its places in the main list, 0 = next to be leased"),
    ("processing_places", "report.processing_places", "its places in processing, 0 = the oldest"),
    ("lease_keys", lambda s: [*map(escaped, s.leases)], "the names of the lease keys that exist"),
    ("leases", _lease_objects, "those that hold a lease: `key`, `holder`, `ttl_ms`"),
    (
        "wrong_types",
        lambda s: [{"key": escaped(key), "type": kind} for key, kind in s.wrong_types.items()],
        "keys of the wrong type: `key`, `type`",
    ),
)


def _join_remedies(part: str, explained: Explanation) -> str | None:
    return " ".join(getattr(REMEDIES[code], part) for code in explained.findings) or None


EXPLANATION_FIELDS: Fields[Explanation] = Fields(
    "An item, explained",
    *(column.within(attribute("item")) for column in ITEM_FIELDS.all),
    field("meaning", "meaning", "the state in a sentence"),
    field("next", "next.text", "what will happen next, in a sentence"),
    field("commands", "commands", "command lines to run next"),
    field("next_in_seconds", "next.in_s", "until something happens by itself; else null"),
    field("findings", "findings", "what `doctor` would report, by its codes"),
    *(field(part, partial(_join_remedies, part), "of the findings") for part in ("cause", "cure")),
    field("places_per_second", "forecast.rate_per_s", "how fast the item moves up (`--eta`)"),
    field("result", "result", "the result kept under this ID; null if none", is_object=True),
    *(column._replace(name=f"result.{column.name}") for column in KEPT_FIELDS),
    field("facts", "report", "what was read", is_object=True),
    *(field(f"facts.{name}", get, help) for name, get, help in _FACTS),
)


def show_sections(explained: Explanation) -> list[Section]:
    item, next = explained.item, explained.next.text
    # The meaning has already explained the state.
    also = [REMEDIES[code].cause for code in explained.findings if code.value != item.state.value]
    cures = [REMEDIES[code].cure for code in explained.findings if REMEDIES[code].cure != next]
    rows: list[Line] = [
        ("queue", escaped(item.queue), None),
        ("state", item.state.value, state_style(item.state) or "bold"),
        ("", explained.meaning, None),
        ("next", next, None),
        *(("also", cause, "red") for cause in also),
    ]
    commands = "result" if item.state is State.GONE else "commands"
    for label, values, style in (
        ("cure", cures, None),
        (commands, explained.commands, COMMAND_STYLE),
    ):
        rows += [("" if number else label, value, style) for number, value in enumerate(values)]
    sections = [Section(escaped(item.item_id), rows)]
    if explained.wrong_types:
        wrong = [
            (escaped(key), f"is a {kind}", "red") for key, kind in explained.wrong_types.items()
        ]
        sections.append(Section("Keys of the wrong type", wrong))
    sections.append(Section("Facts", [*_describe_facts(explained)]))
    if item.data is not None:
        sections.append(Section("Data", [("", _pretty(item.data), None)], is_data=True))
    elif item.preview is not None:
        cut = "" if item.payload_bytes == len(item.preview) else " …"
        sections.append(Section("Data", [("", (preview_text(item) or "") + cut, None)]))
    return sections


def _describe_facts(explained: Explanation) -> Iterator[Line]:
    item, report, facts = explained.item, explained.report, explained.report.facts
    now_ms, data = facts.now_ms, "none"
    if facts.has_data:
        size = "" if item.payload_bytes is None else f"{human.size(item.payload_bytes)}, "
        used = "last use unknown" if item.idle_s is None else f"last used {human.ago(item.idle_s)}"
        data = f"{size}{used}"
    yield "data", data, None
    main, processing = _times(facts.in_main), _times(facts.in_processing)
    if (ahead := report.position) is not None:
        main += f", {human.count(ahead)} ahead of it" if ahead else ", next to be leased"
    if report.processing_places:
        older = report.processing_places[0]
        processing += f", {human.count(older)} older than it" if older else ", the oldest"
    yield "main list", main, None
    yield "processing list", processing, None
    if facts.in_cleaning:
        yield "cleaning list", _times(facts.in_cleaning), None
    no_lease = (
        "none; a client that knows only one of the lease keys has ended it"
        if facts.was_ended
        else "none"
    )
    yield "lease", no_lease if facts.lease is None else _lease(facts.lease, now_ms), None
    for key in explained.leases:
        yield "lease key", escaped(key), "dim"
    for label, score, unix_ms in (
        ("due", facts.due_ms, item.due_ms),
        ("buried", facts.buried_ms, item.buried_ms),
    ):
        if unix_ms is not None:
            yield label, human.when(unix_ms, now_ms), None
        elif score is not None:
            yield label, f"{score:g}, which is not a time", None
    if item.reason is not None:
        yield "reason", escaped(item.reason), None
    if facts.returns is not None:
        times = "once" if facts.returns == 1 else f"{human.count(facts.returns)} times"
        yield "returns", f"{times}, by cleans or after failed attempts", None
    if (result := explained.result) is not None:
        size_shown = (
            "none given" if result.result_bytes is None else human.size(result.result_bytes)
        )
        expiry = "no expiry"
        if result.ttl_ms is not None:
            expiry = f"expires in {human.duration(result.ttl_ms / 1000)}"
        whose = ", of an earlier item with this ID" if item.state.has_data else ""
        completed = human.when(result.completed_ms, now_ms)
        yield "result", f"{result.status.value} {completed}, {size_shown}, {expiry}{whose}", None


def _lease(lease: Lease, now_ms: int) -> str:
    expiry = "no expiry"
    if lease.ttl_ms is not None:
        expiry = f"ends {human.when(now_ms + lease.ttl_ms, now_ms)}"
    if is_guard(lease):
        return f"none; guarded, {expiry}"
    return f"{expiry}, held by {escaped(lease.holder) or 'an unknown holder'}"


def _times(count: int) -> str:
    return {0: "no", 1: "yes"}.get(count, f"{human.count(count)} times")


def _pretty(data: bytes) -> str:
    if data[:1] in (b"{", b"["):
        from rwq_cli.output.json_text import indented

        data = indented(data)
    return "\n".join(map(escaped, data.split(b"\n")))
