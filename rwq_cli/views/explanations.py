"""Explains the state of an item: what it means, what happens next, and which commands help."""

from collections.abc import Sequence
from typing import NamedTuple

from rwq_cli.core.inspect.forecast import Forecast
from rwq_cli.core.inspect.report import ItemReport
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.model import State
from rwq_cli.core.repair.finding_rules import findings_about
from rwq_cli.core.repair.findings import Code
from rwq_cli.output import human
from rwq_cli.views.command_lines import CommandLines, shell_word
from rwq_cli.views.item_remedies import ITEM_REMEDIES
from rwq_cli.views.states import STATES


class Explanation(NamedTuple):
    """The answer to "why is it stuck?".

    Attributes:
        meaning: The state in words.
        next: What happens next without intervention.
        next_in_s: Seconds until then; None if nothing will happen, or the time is unknown.
        commands: Command lines that help.
        findings: What the doctor would find.
        causes: The causes of the findings.
        cures: How to fix them.
    """

    meaning: str
    next: str
    next_in_s: float | None
    commands: tuple[str, ...]
    findings: tuple[Code, ...]
    causes: tuple[str, ...]
    cures: tuple[str, ...]


def explain(
    queue: bytes,
    item_report: ItemReport,
    forecast: Forecast | None,
    result: Result | None,
    wrong_keys: Sequence[bytes],
    lines: CommandLines,
) -> Explanation:
    """Explain the facts about one ID."""
    facts = item_report.facts
    state = facts.state
    meaning = STATES[state].meaning
    verbs = _VERBS[state](item_report) if state in _VERBS else STATES[state].verbs
    findings = list(findings_about(facts))
    if wrong_keys and Code.WRONG_TYPE not in findings:
        findings.append(Code.WRONG_TYPE)
    commands = [lines.of_item(verb, queue, facts.item_id) for verb in verbs]
    commands += [lines.of_redis_cli(f"TYPE {shell_word(key)}") for key in facts.wrong_types]
    if result is not None and state is State.GONE:
        meaning = f"The item no longer exists: it was {result.status.value}."
        commands.append(lines.of_item("result", queue, facts.item_id))
    commands += [lines.of_redis_cli(f"TYPE {shell_word(key)}") for key in wrong_keys]
    remedies = [ITEM_REMEDIES[code] for code in findings]
    return Explanation(
        meaning,
        _next(item_report, forecast),
        _next_in_s(state, item_report, forecast),
        tuple(commands),
        tuple(findings),
        tuple(remedy.cause for remedy in remedies),
        tuple(remedy.cure for remedy in remedies),
    )


def _next(item_report: ItemReport, forecast: Forecast | None) -> str:
    facts = item_report.facts
    lease = facts.lease
    left = human.duration(lease.ttl_ms / 1000) if lease and lease.ttl_ms is not None else ""
    match facts.state:
        case State.WAITING:
            return _turn(item_report.position, forecast)
        case State.LEASED:
            return (
                f"Unless it is completed or the lease is renewed, the lease ends in {left}; then "
                "the item is abandoned, and the next light clean returns it."
            )
        case State.UNLISTED:
            return f"The lease ends in {left}; then it is orphaned, and a deep clean returns it."
        case State.DELAYED | State.DUE:
            return _due(item_report)
        case State.STRAY_LEASE:
            return f"The lease ends in {left}." if left else "Nothing: it has no expiry."
        case state:
            return STATES[state].next_sentence


def _for_waiting(item_report: ItemReport) -> tuple[str, ...]:
    # What removes an item is never the first that is offered.
    return ("release --front", "complete") if item_report.position else ("bury", "complete")


def _for_ghost(item_report: ItemReport) -> tuple[str, ...]:
    facts = item_report.facts
    # A light clean reads processing and what is due.
    is_due_later = facts.due_ms is not None and facts.due_ms > facts.now_ms
    is_elsewhere = facts.in_main or is_due_later or facts.buried_ms is not None
    return ("clean deep",) if is_elsewhere else ("clean light",)


def _for_stray_lease(item_report: ItemReport) -> tuple[str, ...]:
    lease = item_report.facts.lease
    return () if lease is None or lease.ends else ("doctor --fix",)


_VERBS = {
    State.WAITING: _for_waiting,
    State.GHOST: _for_ghost,
    State.STRAY_LEASE: _for_stray_lease,
}


def _next_in_s(state: State, item_report: ItemReport, forecast: Forecast | None) -> float | None:
    facts = item_report.facts
    if state in (State.LEASED, State.UNLISTED, State.STRAY_LEASE):
        ttl_ms = facts.lease.ttl_ms if facts.lease else None
        return None if ttl_ms is None else ttl_ms / 1000
    if state is State.DELAYED and facts.due_ms is not None and not facts.has_invalid_score:
        return (facts.due_ms - facts.now_ms) / 1000
    return forecast.turn_in_s if state is State.WAITING and forecast else None


def _turn(position: int | None, forecast: Forecast | None) -> str:
    if not position:
        return "It is the next to be leased."
    ahead = human.count(position)
    items = f"{ahead} items" if position > 1 else "item"
    text = f"It is leased after the {items} ahead of it"
    if forecast is None:
        return f"{text}."
    if forecast.turn_in_s is None:
        return f"{text}; it did not move up while the queue was watched."
    return f"{text}, in about {human.duration(forecast.turn_in_s)} at the present rate."


def _due(item_report: ItemReport) -> str:
    facts = item_report.facts
    if facts.due_ms is None:
        return ""
    if facts.has_invalid_score:
        return "It is never due: its score is not a time."
    ahead_s = max((facts.due_ms - facts.now_ms) / 1000, -facts.now_ms / 1000)
    due = f"is due in {human.duration(ahead_s)}; then"
    if ahead_s <= 0:
        due = f"has been due for {human.duration(-ahead_s)}:"
    return (
        f"It {due} the next rwq lease, work, wait or clean promotes it; failing that, any "
        "worker's deep clean returns it once its guard has expired."
    )
