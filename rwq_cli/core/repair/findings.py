"""The findings of the doctor, which `show` names, too: their codes, severities and rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from rwq_cli.core.health import NEAR_LIMIT, Refusal, ServerStatus
from rwq_cli.core.inspect.keyspace import may_be_in_nested_queue
from rwq_cli.core.keys import GUARD_MARGIN_MS, is_text
from rwq_cli.core.model import State
from rwq_cli.core.state.rules import Facts, is_guard, transit_of


class Severity(StrEnum):
    """How severe a finding is. A healthy queue has only notes."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Code(StrEnum):
    """The codes of findings. Most have the name of a state.

    `DUE` is only for items that are over a minute late, and `STRAY_LEASE` only for leases that
    expire; those that do not are `ENDLESS_LEASE`.
    """

    severity: Severity

    def __new__(cls, word: str, severity: Severity = Severity.WARNING) -> "Code":
        code = str.__new__(cls, word)
        code._value_, code.severity = word, severity
        return code

    WRONG_TYPE = "wrong-type", Severity.ERROR
    HELD = "held", Severity.ERROR
    DUPLICATED = "duplicated", Severity.ERROR
    TWO_HOLDERS = "two-holders", Severity.ERROR
    OUT_OF_MEMORY = Refusal.OUT_OF_MEMORY.value, Severity.ERROR
    READONLY = Refusal.READONLY.value, Severity.ERROR
    WRITE_ERRORS = Refusal.WRITE_ERRORS.value, Severity.ERROR
    TOO_FEW_REPLICAS = Refusal.TOO_FEW_REPLICAS.value, Severity.ERROR
    NEAR_MAXMEMORY = "near-maxmemory", Severity.ERROR
    EVICTING_SERVER = "evicting-server", Severity.ERROR
    ABANDONED = "abandoned"
    ORPHANED = "orphaned"
    UNLISTED = "unlisted"
    DUE = "due"
    MOVING = "moving"
    UNGUARDED = "unguarded"
    STALLED = "stalled"
    GHOST = "ghost"
    INVALID_SCORE = "invalid-score"
    ENDLESS_LEASE = "endless-lease"
    STALE_SCHEDULE = "stale-schedule"
    STALE_CLEANING = "stale-cleaning"
    EMPTY_ID = "empty-id"
    BINARY_ID = "binary-id"
    SHADOWED_NAME = "shadowed-name"
    STRAY_LEASE = "stray-lease", Severity.NOTE
    OFTEN_RETURNED = "often-returned", Severity.NOTE
    LONG_LEASE = "long-lease", Severity.NOTE
    STALE_RETURNS = "stale-returns", Severity.NOTE
    INVALID_RETURNS = "invalid-returns", Severity.NOTE
    FOREIGN_KEY = "foreign-key", Severity.NOTE
    EVICTED = "evicted", Severity.NOTE
    RESTARTED = "restarted", Severity.NOTE
    FLUSHED = "flushed", Severity.NOTE
    NO_PERSISTENCE = "no-persistence", Severity.NOTE
    NO_HASH_TAG = "no-hash-tag", Severity.NOTE


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and the IDs or keys that have it.

    Attributes:
        code: The code.
        count: The number of IDs or keys; 1 for findings about the server or the queue's name.
        examples: A few of them; the ones that are left come first.
        of_keys: Whether the examples are not IDs: key names, the queue's name, or the nodes of a
            cluster.
        names_queue: Whether the example is the queue that takes the most of the memory.
        fixed: How many were fixed, or in a dry run would be.
        left: How many are left.
        reason: Why the first example is buried, if that tells what to do; else None.
        servers: Of findings about the server: those that have it, several on a cluster.
    """

    code: Code
    count: int
    examples: tuple[bytes, ...]
    of_keys: bool
    fixed: int
    left: int
    reason: bytes | None = None
    servers: tuple[ServerStatus, ...] = ()
    names_queue: bool = False


# States that are findings themselves.
_STATES = {state: Code(state.value) for state in State if state.is_broken}


def _has_two_holders(facts: Facts) -> bool:
    new, old = facts.live_leases
    if not facts.has_data or new is None or old is None or new.holder == old.holder:
        return False
    # A guard has no holder.
    return not (is_guard(new) or is_guard(old))


def _is_stray(facts: Facts, *, ends: bool) -> bool:
    lease = None if facts.has_data else facts.lease
    if lease is None or lease.ends is not ends or may_be_in_nested_queue(facts.item_id):
        return False
    # The guard of a delayed or buried ghost is removed with its entry.
    return not (facts.has_schedule_entry and is_guard(lease))


# From how many ms to come on a lease is a finding.
LONG_LEASE_MS = 6 * 3600 * 1000


def _has_long_lease(facts: Facts) -> bool:
    # Under any other state's item it holds nothing up, and a release would end that state.
    lease = facts.session if facts.state.is_leased else None
    return lease is not None and (lease.ttl_ms or 0) > LONG_LEASE_MS


_RULES: tuple[tuple[Code, Callable[[Facts], bool]], ...] = (
    (Code.TWO_HOLDERS, _has_two_holders),
    (Code.BINARY_ID, lambda facts: facts.has_data and not is_text(facts.item_id)),
    (Code.ENDLESS_LEASE, lambda facts: _is_stray(facts, ends=False)),
    (Code.STRAY_LEASE, lambda facts: _is_stray(facts, ends=True)),
    (Code.STALE_CLEANING, lambda facts: facts.is_stale_in_cleaning),
    (Code.OFTEN_RETURNED, lambda f: f.is_often_returned and f.state is not State.BURIED),
    (Code.LONG_LEASE, _has_long_lease),
    (Code.STALE_RETURNS, lambda facts: facts.has_stale_returns),
    (Code.INVALID_RETURNS, lambda facts: facts.has_data and facts.has_invalid_returns),
)
# Of what has an entry in a sorted set, which is rare among millions that are healthy.
_ENTRY_RULES: tuple[tuple[Code, Callable[[Facts], bool]], ...] = (
    # Late: it was not promoted before its guard ended.
    (Code.DUE, lambda f: f.state is State.DUE and (f.due_ms or 0) + GUARD_MARGIN_MS < f.now_ms),
    (Code.MOVING, lambda f: f.state is State.BURIED and bool(transit_of(f.reason))),
    (Code.UNGUARDED, lambda facts: facts.is_unguarded),
    (Code.INVALID_SCORE, lambda facts: facts.has_invalid_score),
    (Code.STALE_SCHEDULE, lambda facts: facts.has_stale_schedule),
)


def findings_about(facts: Facts) -> tuple[Code, ...]:
    if facts.wrong_types:
        return (Code.WRONG_TYPE,)
    if not facts.item_id and (facts.has_data or facts.is_listed or facts.has_schedule_entry):
        return (Code.EMPTY_ID,)
    rules = (*_ENTRY_RULES, *_RULES) if facts.has_schedule_entry else _RULES
    codes = tuple(code for code, holds in rules if holds(facts))
    return (_STATES[facts.state], *codes) if facts.state in _STATES else codes


class Problem(NamedTuple):
    """A finding about an ID, the state that it was in, and the structure that its fix changes."""

    code: Code
    state: State
    where: str | None = None


Problems = tuple[Problem, ...]
# One of each combination, because there may be a million of them.
_SHARED: dict[Problems, Problems] = {}
_CHANGED = {
    Code.ABANDONED: "processing",
    Code.DUE: "delayed",
    Code.STALE_CLEANING: "cleaning",
    Code.STALE_RETURNS: "returns",
}


def problems_of(facts: Facts) -> Problems:
    is_plain = facts.is_plain and facts.item_id and is_text(facts.item_id)
    return _problems_of_plain(*facts[1:4]) if is_plain else _problems_of(facts)


def _problems_of(facts: Facts) -> Problems:
    if not (codes := findings_about(facts)):
        return ()
    state = facts.state if facts.has_data else State.GHOST
    problems = tuple(
        Problem(code, state, where) for code in codes for where in _places(code, facts)
    )
    return _SHARED.setdefault(problems, problems)


_problems_of_plain = cache(lambda *places: _problems_of(Facts(b"any", *places)))


def _places(code: Code, facts: Facts) -> list[str | None]:
    scores = {"delayed": facts.due_ms, "buried": facts.buried_ms}
    scheduled: list[str | None] = [where for where in scores if scores[where] is not None]
    match code:
        case Code.GHOST | Code.EMPTY_ID:
            # One fix removes the entries of both lists.
            listed = "processing" if facts.in_processing else "main"
            return [*[listed] * facts.is_listed, *scheduled]
        case Code.DUPLICATED:
            return ["processing" if facts.in_processing and facts.session is None else "main"]
        case Code.STALE_SCHEDULE:
            return scheduled[:1]
        case Code.ORPHANED:
            return ["cleaning" if facts.in_cleaning else None]
    return [_CHANGED.get(code)]


# A restart is news for so long, seconds.
_RESTARTED_S = 3600
# How often a server has a finding, by its status; falsy if it has not.
_SERVER_RULES: tuple[tuple[Code, Callable[[ServerStatus], int | None]], ...] = (
    *(
        (Code(refusal.value), lambda server, refusal=refusal: server.refusal is refusal)
        for refusal in Refusal
    ),
    (Code.NEAR_MAXMEMORY, lambda s: not s.refusal and (s.memory_share or 0) >= NEAR_LIMIT),
    (Code.EVICTING_SERVER, lambda server: (server.eviction or "noeviction") != "noeviction"),
    (Code.EVICTED, lambda server: server.evicted),
    (Code.RESTARTED, lambda s: s.uptime_s is not None and s.uptime_s < _RESTARTED_S),
    (Code.FLUSHED, lambda server: server.flushes),
    (Code.NO_PERSISTENCE, lambda server: server.persists is False),
)


def server_findings(servers: Sequence[ServerStatus]) -> list[Finding]:
    """The findings about a server, or about the nodes of a cluster."""
    findings = []
    for code, count_of in _SERVER_RULES:
        counts = [(server, int(count_of(server) or 0)) for server in servers]
        concerned = tuple(server for server, count in counts if count)
        total = sum(count for _, count in counts)
        nodes = tuple(server.node.encode() for server in concerned if server.node)
        findings.append(Finding(code, total, nodes, True, 0, total, servers=concerned))
    return [finding for finding in findings if finding.count]
