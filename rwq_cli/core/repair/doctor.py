"""The doctor: finds the problems of a queue, and fixes those that need no decision.

A finding about the state of an ID must be seen by two looks, as in a clean. Findings about the
server, the name and the keys of others need one. The fixes are those of the cleans and a few more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.health import ServerStatus
from rwq_cli.core.inspect.history import stalled_s
from rwq_cli.core.inspect.keyspace import EXAMPLES, Survey, shadowed_by_name, unlisted_owners
from rwq_cli.core.inspect.lookup import facts_of, wrong_structures
from rwq_cli.core.inspect.queues import largest_queue
from rwq_cli.core.inspect.server_status import server_statuses
from rwq_cli.core.items.lock import QueueLock
from rwq_cli.core.items.repairs import repair
from rwq_cli.core.keys import hash_tag
from rwq_cli.core.model import State
from rwq_cli.core.repair.clean import CLEANED, OF_ONE_ITEM, Fixer, Look, Suspects
from rwq_cli.core.repair.findings import Code, Finding, Severity, problems_of, server_findings
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.reads import read_facts
from rwq_cli.core.state.rules import Facts

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# Findings that need only the lease keys of an ID.
_OF_LEASES = frozenset({Code.TWO_HOLDERS, Code.STRAY_LEASE, Code.ENDLESS_LEASE})
# What a fix needs no decision for, in this order.
FIXED = (*CLEANED, Code.DUE, Code.ENDLESS_LEASE)
# For how long nothing must have moved.
_STALLED_S = 600
# How often the doctor tries again to fix what changed under it.
_ROUNDS = 3
# Findings that the fixes of others resolve: they remove the entry or the count in question.
_RESOLVED_BY = {
    Code.STALE_SCHEDULE: (Code.ABANDONED,),
    Code.INVALID_SCORE: (Code.ABANDONED, Code.GHOST, Code.EMPTY_ID, Code.STALE_SCHEDULE),
    Code.INVALID_RETURNS: (Code.ABANDONED, Code.ORPHANED),
}


class Diagnosis(NamedTuple):
    """The findings about a queue, or about a server.

    Attributes:
        queue: The queue's name; None for a server.
        findings: The findings, the most severe first.
        items: About how many items there are; None if a key of the wrong type prevented the walk.
        dry_run: Whether the fixes were only tried, as a dry run.
    """

    queue: bytes | None
    findings: tuple[Finding, ...]
    items: int | None
    dry_run: bool

    @property
    def is_healthy(self) -> bool:
        """Whether no errors or warnings are left."""
        # A dry run fixed nothing.
        return not any(one.left or (self.dry_run and one.fixed) for one in self.serious)

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The errors and warnings."""
        return tuple(one for one in self.findings if one.code.severity is not Severity.NOTE)


def diagnose(
    queue: Queue,
    *,
    codes: Iterable[Code] | None = None,
    fix: bool = False,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
    all_ids: bool = False,
    servers: Sequence[ServerStatus] | None = None,
) -> Diagnosis:
    """See `WorkQueue.diagnose`.

    Args:
        all_ids: All IDs of a finding are its examples.
        servers: The servers whose findings are among them; by default that of the queue, or all of
            a cluster.
    """
    queue.connection.set_no_touch()
    wanted = frozenset(Code if codes is None else codes)

    def diagnosis(findings: Iterable[Finding], items: int | None) -> Diagnosis:
        return Diagnosis(queue.name, _in_order(findings, wanted), items, dry_run)

    if servers is None:
        servers = server_statuses(queue.connection, queue.keys.absent)
    is_split = queue.connection.root.is_cluster and hash_tag(queue.name) is None
    wrong = list(wrong_structures(queue))
    findings = [
        *server_findings(servers),
        _about_keys(Code.NO_HASH_TAG, [queue.name] * is_split),
        _about_keys(Code.WRONG_TYPE, wrong),
    ]
    # If one of the queue's own keys has the wrong type, the queue cannot be read.
    if wrong:
        return diagnosis(findings, None)
    look = Look(FirstLook(queue.now_ms()))
    survey = _first_look(queue, look)
    others = *survey.nested, *unlisted_owners(queue, look.suspects), *shadowed_by_name(queue)
    findings += [
        _about_keys(Code.WRONG_TYPE, survey.without_nested(survey.wrong)),
        _about_keys(Code.SHADOWED_NAME, list(dict.fromkeys(others))),
        _about_keys(Code.FOREIGN_KEY, survey.examples, survey.unowned),
        *_stalled(queue),
    ]
    # Keys of the wrong type have a finding of their own.
    look.suspects = _only(look.suspects, lambda _, code: code in wanted - {Code.WRONG_TYPE})
    confirmed = left_over = _confirmed(queue, look, grace_s)
    resolved = {code: frozenset[bytes]() for code in Code}
    if fix:
        resolved, left_over = _fix(queue, look, wanted, grace_s, dry_run=dry_run)
    remaining, most = _by_code(left_over), None if all_ids else EXAMPLES
    for code, ids in _by_code(confirmed).items():
        examples = tuple(dict.fromkeys([*remaining[code][:most], *ids[:most]]))[:most]
        reason = next(facts_of(queue, examples[:1])).reason if code is Code.MOVING else None
        counts = len(resolved[code].intersection(ids)), len(remaining[code])
        findings.append(Finding(code, len(ids), examples, False, *counts, reason))
    return diagnosis(findings, survey.items)


def _fix(
    queue: Queue, look: Look, wanted: frozenset[Code], grace_s: float, *, dry_run: bool
) -> tuple[dict[Code, frozenset[bytes]], Suspects]:
    """Fix what a look has confirmed; what changes meanwhile, after two looks again.

    Returns:
        By code, the IDs whose finding was fixed or resolved; and the suspects that are left.
    """
    first, confirmed = look.first, look.suspects
    fixed: defaultdict[Code, set[bytes]] = defaultdict(set)
    resolved: dict[Code, frozenset[bytes]] = {}
    for rounds_left in reversed(range(_ROUNDS)):
        if look.suspects:
            with QueueLock(queue, "clean", dry_run=dry_run) as lock:
                for problem, outcomes in Fixer(queue, look, lock, dry_run).fix(FIXED):
                    fixed[problem.code].update(outcomes.ids)
        for code in Code:
            resolving = fixed[code], *map(fixed.__getitem__, _RESOLVED_BY.get(code, ()))
            resolved[code] = frozenset().union(*resolving)
        remaining = _only(confirmed, lambda item_id, code: item_id not in resolved[code])
        if dry_run:
            break
        # Other clients may have fixed the rest, or it is gone.
        remaining = _second_look(queue, remaining, first)
        changed = _only(remaining, lambda _, code: code in FIXED and code in wanted)
        if not (changed and rounds_left):
            break
        look = Look(FirstLook(queue.now_ms()))
        for facts in facts_of(queue, changed.keys(), digests=True):
            look.note(facts)
        look.suspects = _only(look.suspects, lambda _, code: code in wanted)
        _confirmed(queue, look, grace_s)
    return resolved, remaining


def diagnose_server(
    connection: "Connection", codes: Iterable[Code], queues: Sequence[Queue]
) -> Diagnosis:
    """Find what is wrong with a server, or with the nodes of a cluster; and which of some queues
    takes the most of a memory that is nearly full."""
    findings = server_findings(server_statuses(connection))
    for index, finding in enumerate(findings):
        is_of_memory = finding.code in (Code.OUT_OF_MEMORY, Code.NEAR_MAXMEMORY)
        # On a cluster, the examples are nodes.
        if is_of_memory and not finding.examples and (largest := largest_queue(queues)):
            findings[index] = replace(finding, examples=(largest,), names_queue=True)
    return Diagnosis(None, _in_order(findings, frozenset(codes)), None, dry_run=False)


def _stalled(queue: Queue) -> Iterator[Finding]:
    # A user who may not read the history learns nothing of it.
    with suppress(PermissionDenied):
        if (stalled_s(queue) or 0) >= _STALLED_S:
            next_ids = queue.call("LRANGE", queue.keys.main, -1, -1)
            yield Finding(Code.STALLED, 1, tuple(next_ids), False, 0, 1)


def _in_order(findings: Iterable[Finding], wanted: frozenset[Code]) -> tuple[Finding, ...]:
    by_code = {finding.code: finding for finding in findings if finding.count}
    return tuple(by_code[code] for code in Code if code in by_code and code in wanted)


def _about_keys(code: Code, keys: Sequence[bytes], count: int | None = None) -> Finding:
    count = len(keys) if count is None else count
    return Finding(code, count, tuple(keys[:EXAMPLES]), True, 0, count)


def _first_look(queue: Queue, look: Look) -> Survey:
    listed: set[bytes] = set()

    def note_listed(facts: Facts) -> None:
        listed.add(facts.item_id)
        look.note(facts)

    def note_leased(ids: list[bytes]) -> None:
        for facts in read_facts(queue, [item_id for item_id in ids if item_id not in listed]):
            if problems := tuple(p for p in problems_of(facts) if p.code in _OF_LEASES):
                look.suspects[facts.item_id] = problems

    # The survey looks up its suspects everywhere, so their facts replace those read before.
    survey = Survey(queue, on_listed=note_listed, on_leased=note_leased)
    for facts in survey.facts():
        look.note(facts)
    return survey


def _confirmed(queue: Queue, look: Look, grace_s: float) -> Suspects:
    """Look at the suspects once more, a grace period later; those that are left replace them."""
    if look.suspects:
        queue.clock.sleep(grace_s)
    look.suspects = _second_look(queue, look.suspects, look.first)
    return look.suspects


def _second_look(queue: Queue, suspects: Suspects, look: FirstLook) -> Suspects:
    """What is still wrong with IDs. What is in no list of a long queue may have been pushed after
    that list was read: an orphan is one only if a repair, which looks again, would return it."""
    # Almost all of many are orphans and nothing else, of which the repair alone tells.
    broken = {i: p for i, p in suspects.items() if [one.code for one in p] == [Code.ORPHANED]}
    others = [item_id for item_id in suspects if item_id not in broken]
    for facts in facts_of(queue, others, digests=True):
        problems, before, is_same = problems_of(facts), suspects[facts.item_id], look.is_same(facts)
        if problems != before or not is_same:
            codes = {problem.code for problem in before} - (frozenset() if is_same else OF_ONE_ITEM)
            problems = tuple(problem for problem in problems if problem.code in codes)
        if problems:
            broken[facts.item_id] = problems
    orphans = _by_code(broken)[Code.ORPHANED]
    repairs = repair(queue, orphans, (State.ORPHANED,), look, dry_run=True) if orphans else ()
    confirmed = {item_id for batch in repairs for item_id in batch.ids}
    return _only(broken, lambda item_id, code: code is not Code.ORPHANED or item_id in confirmed)


def _only(suspects: Suspects, accepts: Callable[[bytes, Code], bool]) -> Suspects:
    accepted: Suspects = {}
    for item_id, problems in suspects.items():
        if of_item := tuple(one for one in problems if accepts(item_id, one.code)):
            accepted[item_id] = of_item
    return accepted


def _by_code(suspects: Suspects) -> defaultdict[Code, list[bytes]]:
    ids_by_code: defaultdict[Code, list[bytes]] = defaultdict(list)
    for item_id, problems in suspects.items():
        for code in {problem.code for problem in problems}:
            ids_by_code[code].append(item_id)
    return ids_by_code
