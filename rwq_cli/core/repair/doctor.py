"""The doctor: finds the problems of a queue, and fixes those that need no decision.

A finding about the state of an ID must be seen by two looks, as in a clean. Findings about the
server, the name and the keys of others need one. The fixes are those of the cleans and a few more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.keyspace import EXAMPLES, Survey, shadowed_by_name, unlisted_owners
from rwq_cli.core.inspect.lookup import facts_of, wrong_structures
from rwq_cli.core.inspect.server_status import server_status
from rwq_cli.core.items.lock import QueueLock
from rwq_cli.core.items.repairs import repair
from rwq_cli.core.keys import hash_tag
from rwq_cli.core.model import State
from rwq_cli.core.repair.clean import CLEANED, OF_ONE_ITEM, Fixer, Look, Suspects
from rwq_cli.core.repair.findings import Code, Finding, Severity, problems_of
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts

# Findings that need only the lease keys of an ID.
_OF_LEASES = frozenset({Code.TWO_HOLDERS, Code.STRAY_LEASE, Code.ENDLESS_LEASE})
# What a fix needs no decision for, in this order.
FIXED = (*CLEANED, Code.DUE, Code.ENDLESS_LEASE)
# Findings that the fixes of others resolve: they remove the entry or the count in question.
_RESOLVED_BY = {
    Code.STALE_SCHEDULE: (Code.ABANDONED,),
    Code.INVALID_SCORE: (Code.ABANDONED, Code.GHOST, Code.EMPTY_ID, Code.STALE_SCHEDULE),
    Code.INVALID_RETURNS: (Code.ABANDONED, Code.ORPHANED),
}


class Diagnosis(NamedTuple):
    """The findings about a queue.

    Attributes:
        queue: The queue's name.
        findings: The findings, the most severe first.
        items: About how many items there are; None if a key of the wrong type prevented the walk.
        dry_run: Whether the fixes were only tried, as a dry run.
    """

    queue: bytes
    findings: tuple[Finding, ...]
    items: int | None
    dry_run: bool

    @property
    def is_healthy(self) -> bool:
        """Whether no errors or warnings are left."""
        problems = [f for f in self.findings if f.code.severity is not Severity.NOTE]
        # A dry run fixed nothing.
        return not any(f.left or (self.dry_run and f.fixed) for f in problems)


def diagnose(
    queue: Queue,
    *,
    codes: Iterable[Code] | None = None,
    fix: bool = False,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
    all_ids: bool = False,
) -> Diagnosis:
    """See `WorkQueue.diagnose`; with `all_ids`, all IDs of a finding are its examples."""
    queue.connection.set_no_touch()
    wanted = frozenset(Code if codes is None else codes)

    def diagnosis(findings: Iterable[Finding], items: int | None) -> Diagnosis:
        found = {each.code: each for each in findings if each.count}
        chosen = (found[code] for code in Code if code in found and code in wanted)
        return Diagnosis(queue.name, tuple(chosen), items, dry_run)

    status, wrong = server_status(queue.connection), list(wrong_structures(queue))
    policy = (status.eviction or "noeviction").encode()
    findings = [
        _about_keys(Code.EVICTING_SERVER, [policy] * (policy != b"noeviction")),
        _about_keys(Code.NO_PERSISTENCE, [], int(status.persists is False)),
        _about_keys(Code.NO_HASH_TAG, [queue.name] * (hash_tag(queue.name) is None)),
        _about_keys(Code.WRONG_TYPE, wrong),
    ]
    # If one of the queue's own keys has the wrong type, the queue cannot be read.
    if wrong:
        return diagnosis(findings, None)
    look = Look(FirstLook(queue.now_ms()))
    survey = _first_look(queue, look)
    others = *survey.nested, *unlisted_owners(queue, look.suspects), *shadowed_by_name(queue)
    findings += [
        _about_keys(Code.WRONG_TYPE, survey.own(survey.wrong)),
        _about_keys(Code.SHADOWED_NAME, list(dict.fromkeys(others))),
        _about_keys(Code.FOREIGN_KEY, survey.examples, survey.unowned),
    ]
    # Keys of the wrong type have a finding of their own.
    suspects = _only(look.suspects, lambda _, code: code in wanted - {Code.WRONG_TYPE})
    if suspects:
        queue.clock.sleep(grace_s)
    found = look.suspects = _second_look(queue, suspects, look.first)
    fixed: defaultdict[Code, set[bytes]] = defaultdict(set)
    if fix and found:
        with QueueLock(queue, "clean", dry_run=dry_run) as lock:
            for problem, outcomes in Fixer(queue, look, lock, dry_run).fix(FIXED):
                fixed[problem.code].update(outcomes.ids)

    done = {c: fixed[c].union(*(fixed[each] for each in _RESOLVED_BY.get(c, ()))) for c in Code}
    left = _only(found, lambda item_id, code: item_id not in done[code]) if fix else found
    if fix and not dry_run:
        # Other clients may have fixed the rest, or it is gone.
        left = _second_look(queue, left, look.first)
    remaining, most = _by_code(left), None if all_ids else EXAMPLES
    for code, ids in _by_code(found).items():
        shown = tuple(dict.fromkeys([*remaining[code][:most], *ids[:most]]))[:most]
        reason = next(facts_of(queue, shown[:1])).reason if code is Code.MOVING else None
        counts = len(done[code].intersection(ids)), len(remaining[code])
        findings.append(Finding(code, len(ids), shown, False, *counts, reason))
    return diagnosis(findings, survey.items)


def _about_keys(code: Code, keys: Sequence[bytes], count: int | None = None) -> Finding:
    count = len(keys) if count is None else count
    return Finding(code, count, tuple(keys[:EXAMPLES]), True, 0, count)


def _first_look(queue: Queue, look: Look) -> Survey:
    listed: set[bytes] = set()

    def note_listed(facts: Facts) -> None:
        listed.add(facts.item_id)
        look.note(facts)

    def note_leased(ids: list[bytes]) -> None:
        for facts in probe(queue, [item_id for item_id in ids if item_id not in listed]):
            if found := tuple(p for p in problems_of(facts) if p.code in _OF_LEASES):
                look.suspects[facts.item_id] = found

    # The survey looks up its suspects everywhere, so their facts replace those read before.
    survey = Survey(queue, on_listed=note_listed, on_leased=note_leased)
    for facts in survey.facts():
        look.note(facts)
    return survey


def _second_look(queue: Queue, suspects: Suspects, look: FirstLook) -> Suspects:
    """What is still wrong with IDs. What is in no list of a long queue may have been pushed after
    that list was read: an orphan is one only if a repair, which looks again, would return it."""
    found: Suspects = {}
    for facts in facts_of(queue, suspects.keys(), digests=True):
        problems, before, is_same = problems_of(facts), suspects[facts.item_id], look.is_same(facts)
        if problems != before or not is_same:
            codes = {problem.code for problem in before} - (frozenset() if is_same else OF_ONE_ITEM)
            problems = tuple(each for each in problems if each.code in codes)
        if problems:
            found[facts.item_id] = problems
    orphans = _by_code(found)[Code.ORPHANED]
    repairs = repair(queue, orphans, (State.ORPHANED,), look, dry_run=True) if orphans else ()
    confirmed = {item_id for batch in repairs for item_id in batch.ids}
    return _only(found, lambda item_id, code: code is not Code.ORPHANED or item_id in confirmed)


def _only(suspects: Suspects, accepts: Callable[[bytes, Code], bool]) -> Suspects:
    chosen = {i: tuple(p for p in each if accepts(i, p.code)) for i, each in suspects.items()}
    return {item_id: problems for item_id, problems in chosen.items() if problems}


def _by_code(suspects: Suspects) -> defaultdict[Code, list[bytes]]:
    found: defaultdict[Code, list[bytes]] = defaultdict(list)
    for item_id, problems in suspects.items():
        for code in {problem.code for problem in problems}:
            found[code].append(item_id)
    return found
