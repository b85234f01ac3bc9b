"""`rwq show`: everything about an item."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import IdsArgument, NullOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.forecast import Forecast
from rwq_cli.core.inspect.report import ItemReport
from rwq_cli.core.items.results import A_RESULT, NOTHING, Result
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Facts, Item, State
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.input.ids import read_ids
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import COMMAND_STYLE, Detail, Report, Section, View
from rwq_cli.output.shell_quoting import command_line
from rwq_cli.views.explanations import Explanation, explain, with_wrong_key
from rwq_cli.views.records import item_fields, state_style

app = CommandModule()

_NO_ITEM = (State.GONE, State.STRAY_LEASE, State.GHOST)


@dataclass(frozen=True)
class Shown:
    """One item with all that is told of it."""

    item: Item
    item_report: ItemReport
    explanation: Explanation
    forecast: Forecast | None
    kept: Result | None = None
    wrong_result: Mapping[bytes, str] = field(default_factory=dict)

    @property
    def wrong_types(self) -> dict[bytes, str]:
        """All keys of it that hold something else than they should, with its type."""
        return {**self.item_report.facts.wrong_types, **self.wrong_result}


@app.command(
    help="Show everything about an item: its state, why, what happens next and when, and what "
    "would move it on. An ID that is - itself goes in on stdin.",
    examples=(
        "rwq show -q jobs 4f2a9c",
        "rwq show -q jobs 4f2a9c -o data > job.json",
        "rwq show -q jobs 4f2a9c --eta 2s",
        "rwq leases -q jobs -o ids | rwq show -q jobs - -o jsonl",
        "echo - | rwq show -q jobs -",
    ),
    exits={
        ExitStatus.NO: "there is no such item",
        ExitStatus.PARTIAL: "some of the items do not exist",
    },
    reads_only=True,
)
def show(
    settings: Settings,
    ids: IdsArgument = None,
    data: Annotated[bool, typer.Option("--data", help="Read and show all of the data.")] = False,
    eta: Annotated[
        str | None,
        typer.Option(
            "--eta",
            metavar="DUR",
            help="Watch the queue for so long, to say when a waiting item's turn comes.",
        ),
    ] = None,
    null: NullOption = False,
) -> Report:
    given = ids or []
    sample_s = None if eta is None else parse_duration(eta)
    chosen = read_ids(settings.environment, given, null_separated=null)
    queue = open_queue(settings)
    wants_data = data or settings.output is OutputFormat.DATA

    denied = False

    def looked_up(batch: list[bytes]) -> tuple[list[Result | None], list[str]]:
        """What is kept of each, and what is under its result's key."""
        nonlocal denied
        try:
            return queue.results(batch), queue.result_kinds(batch)
        except PermissionDenied:
            if not denied:
                settings.environment.note("rwq: this user may not read results; none are shown")
            denied = True
            return [None] * len(batch), [NOTHING] * len(batch)

    def shown() -> Iterator[Shown]:
        for batch in in_batches(chosen):
            item_reports: Iterable[ItemReport] = queue.facts(batch)
            forecasts: Iterable[Forecast | None] = repeat(None)
            if sample_s is not None:
                item_reports = list(item_reports)
                forecasts = queue.forecast(item_reports, sample_s=sample_s)
            results, kinds = looked_up(batch)
            for item_report, forecast, kept, kind in zip(
                item_reports, forecasts, results, kinds, strict=False
            ):
                item = queue.describe(item_report, data=wants_data)
                yield _shown(queue.name, item, item_report, forecast, kept, kind)

    nothing = Facts(b"", False, 0, 0, 0, None, None, None, 0)
    view = View(
        (),
        _fields,
        lambda record: record.item.item_id,
        _shown(queue.name, Item(queue.name, b"", State.GONE), ItemReport(nothing, None, (), None)),
        lambda record: record.item.data,
    )
    return Detail(
        view=view,
        records=shown(),
        sections=_sections,
        one_only=given != ["-"] and len(given) == 1,
        is_missing=lambda record: record.item.state in _NO_ITEM,
        missing=lambda record: f"no such item: {escaped(record.item.item_id)}",
    )


def _shown(
    queue: bytes,
    item: Item,
    item_report: ItemReport,
    forecast: Forecast | None = None,
    kept: Result | None = None,
    kind: str = NOTHING,
) -> Shown:
    explanation = explain(queue, item_report, forecast)
    if kept is not None and item.state is State.GONE:
        command = command_line("result", queue, item.item_id)
        explanation = replace(
            explanation,
            meaning=f"There is no such item any more: it was {kept.verdict.value}.",
            commands=(*explanation.commands, command),
        )
    wrong: dict[bytes, str] = {}
    if kind not in (NOTHING, A_RESULT):
        key = QueueKeys(queue).result(item.item_id)
        wrong[key] = kind
        explanation = with_wrong_key(explanation, key)
    return Shown(item, item_report, explanation, forecast, kept, wrong)


def _fields(record: Shown) -> dict[str, Any]:
    facts = record.item_report.facts
    return {
        **item_fields(record.item),
        "meaning": record.explanation.meaning,
        "next": record.explanation.next,
        "commands": list(record.explanation.commands),
        "next_in_seconds": record.explanation.next_in_s,
        "findings": [code.value for code in record.explanation.findings],
        "cause": " ".join(record.explanation.causes) or None,
        "cure": " ".join(record.explanation.cures) or None,
        "places_per_second": record.forecast.rate_per_s if record.forecast else None,
        "result": _result_fields(record.kept),
        "facts": {
            "data": facts.has_data,
            "in_main": facts.in_main,
            "in_processing": facts.in_processing,
            "in_cleaning": facts.in_cleaning,
            "data_key": escaped(QueueKeys(record.item.queue).item(facts.item_id)),
            "main_places": list(record.item_report.main_places),
            "processing_places": list(record.item_report.processing_places),
            "lease_keys": [escaped(key) for key in record.item_report.lease_keys],
            "leases": [
                {"key": escaped(key), "holder": escaped(lease.holder), "ttl_ms": lease.ttl_ms}
                for key, lease in record.item_report.leases
            ],
            "wrong_types": [
                {"key": escaped(key), "type": kind} for key, kind in record.wrong_types.items()
            ],
        },
    }


def _result_fields(kept: Result | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    return {
        "status": kept.verdict.value,
        "completed_ms": kept.completed_ms,
        "bytes": kept.result_bytes,
        "ttl_ms": kept.ttl_ms,
    }


def _sections(record: Shown) -> list[Section]:
    item = record.item
    rows: list[tuple[str, str, str | None]] = [
        ("queue", escaped(item.queue), None),
        ("state", item.state.value, state_style(item.state) or "bold"),
        ("", record.explanation.meaning, None),
        ("next", record.explanation.next, None),
    ]
    explanation = record.explanation
    # What the state means has been said.
    told = zip(explanation.findings, explanation.causes, strict=True)
    rows += [("also", cause, "red") for code, cause in told if code.value != item.state.value]
    rows += [("" if n else "cure", cure, None) for n, cure in enumerate(explanation.cures)]
    for command in record.explanation.commands:
        verb = "its result" if item.state is State.GONE else "to move it on"
        label = verb if command == record.explanation.commands[0] else ""
        rows.append((label, command, COMMAND_STYLE))
    sections = [Section(escaped(item.item_id), rows), Section("Facts", _fact_rows(record))]
    if item.data is not None:
        sections.append(Section("Data", [("", _pretty(item.data), None)]))
    elif item.preview is not None:
        cut = "" if item.payload_bytes == len(item.preview) else " …"
        sections.append(Section("Data", [("", escaped(item.preview) + cut, None)]))
    if record.wrong_types:
        wrong = [(escaped(key), f"is a {kind}", "red") for key, kind in record.wrong_types.items()]
        sections.insert(1, Section("Keys of the wrong type", wrong))
    return sections


def _fact_rows(record: Shown) -> list[tuple[str, str, str | None]]:
    item, facts, item_report = record.item, record.item_report.facts, record.item_report
    data = "none"
    if facts.has_data:
        size = "" if item.payload_bytes is None else f"{human.size(item.payload_bytes)}, "
        used = human.ago(item.idle_s) if item.idle_s is not None else "unknown when"
        data = f"{size}last used {used}"
    rows: list[tuple[str, str, str | None]] = [("data", data, None)]
    main = _times(facts.in_main)
    if item_report.position is not None:
        main += f", {human.count(item_report.position)} ahead of it"
    rows.append(("main list", main, None))
    processing = _times(facts.in_processing)
    if item_report.processing_places:
        processing += f", {human.count(item_report.processing_places[0])} older than it"
    rows.append(("processing list", processing, None))
    if facts.in_cleaning:
        rows.append(("cleaning list", _times(facts.in_cleaning), None))
    if facts.lease is None:
        rows.append(("lease", "none", None))
    else:
        ttl_ms = facts.lease.ttl_ms
        ends = "no expiry" if ttl_ms is None else f"{human.duration(ttl_ms / 1000)} left"
        rows.append(("lease", f"{ends}, held by {escaped(facts.lease.holder)}", None))
        for key in item_report.lease_keys:
            rows.append(("lease key", escaped(key) + _disagreeing(item_report, key), "dim"))
    if facts.due_ms is not None:
        rows.append(("due", f"{facts.due_ms} (unix ms), {human.moment(facts.due_ms)}", None))
    if facts.buried_ms is not None:
        since = human.ago((facts.now_ms - facts.buried_ms) / 1000)
        moment = f"{human.moment(facts.buried_ms)}, {since}"
        rows.append(("buried", f"{facts.buried_ms} (unix ms), {moment}", None))
    if item.reason is not None:
        rows.append(("reason", escaped(item.reason), None))
    if facts.returns is not None:
        times = "once" if facts.returns == 1 else f"{human.count(facts.returns)} times"
        rows.append(("returns", f"a clean brought it back {times}", None))
    if record.kept is not None:
        rows.append(("result", _kept(record.kept, record.item.state), None))
    return rows


def _kept(kept: Result, state: State) -> str:
    """What is kept under this ID, and of which item."""
    whose = "" if state in _NO_ITEM else ", of an earlier item with this ID"
    given = "none given" if kept.result_bytes is None else human.size(kept.result_bytes)
    ends = "no expiry"
    if kept.ttl_ms is not None:
        ends = f"kept for {human.duration(kept.ttl_ms / 1000)} more"
    return f"{kept.verdict.value} {human.moment(kept.completed_ms)}, {given}, {ends}{whose}"


def _disagreeing(item_report: ItemReport, key: bytes) -> str:
    """What this lease key says, where the two do not say the same."""
    leases = dict(item_report.leases)
    if key not in leases or len({lease.holder for lease in leases.values()}) < 2:
        return ""
    ttl_ms = leases[key].ttl_ms
    ends = "no expiry" if ttl_ms is None else f"{human.duration(ttl_ms / 1000)} left"
    return f": {ends}, held by {escaped(leases[key].holder)}"


def _times(count: int) -> str:
    return {0: "no", 1: "yes"}.get(count, f"{human.count(count)} times")


def _pretty(data: bytes) -> str:
    """JSON objects and arrays laid out; anything else escaped, line by line."""
    if data[:1] in (b"{", b"["):
        try:
            json.loads(data)
            return "\n".join(escaped(line.encode()) for line in _laid_out(data.decode()))
        except (ValueError, RecursionError):
            pass
    return "\n".join(escaped(line) for line in data.split(b"\n"))


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _laid_out(text: str) -> list[str]:
    """The lines of a JSON text, each token as it stands: no number or key is written anew."""
    lines, line, depth = [], "", 0
    tokens = _TOKEN.findall(text)
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token in "{[":
            line += token
            if following not in ("}", "]"):
                depth += 1
                lines.append(line)
                line = "  " * depth
        elif token in "}]":
            if line.strip() and line.strip()[-1:] not in ("{", "["):
                depth -= 1
                lines.append(line)
                line = "  " * depth
            line += token
        elif token == ",":
            lines.append(line + ",")
            line = "  " * depth
        else:
            line += ": " if token == ":" else token
    return [*lines, line]
