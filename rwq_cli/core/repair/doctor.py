"""The doctor: finds the problems of a queue, and fixes those that need no decision.

A finding about the state of an ID must be seen by two looks, a grace period apart: an item between
two commands of its worker looks broken only once. Findings about the server, the name and the keys
of others need one look. The fixes are those of the cleans, and a few more scripts. Each checks
again as it acts, so that concurrent doctors and cleaners fix an ID only once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_WRITES, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.keyspace import (
    EXAMPLES,
    KeyNotes,
    Totals,
    may_be_in_nested_queue,
    owner_of_data,
    shadowed_by_name,
    survey_facts,
)
from rwq_cli.core.inspect.lookup import facts_of, wrong_structures
from rwq_cli.core.inspect.server_status import server_status
from rwq_cli.core.items.repairs import CleanLock, prune, repair, restore_guards
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import hash_tag
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code, Finding, Severity, findings_about
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts

# By ID, what is wrong with it.
_Problems = dict[bytes, tuple[Code, ...]]

# Findings that a new item with the same ID may seem to confirm.
_OF_ONE_ITEM = frozenset({Code.ABANDONED, Code.ORPHANED, Code.DUPLICATED})
# Findings that need only the lease keys of an ID.
_OF_LEASES = frozenset({Code.TWO_HOLDERS, Code.STRAY_LEASE, Code.ENDLESS_LEASE})


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
    """Find the problems of a queue, and optionally fix them; see `WorkQueue.diagnose`.

    With `all_ids`, all IDs of a finding are its examples.
    """
    queue.connection.set_no_touch()
    wanted = frozenset(Code if codes is None else codes)

    def diagnosis(findings: Iterable[Finding], items: int | None) -> Diagnosis:
        found = {each.code: each for each in findings if each.count}
        chosen = (found[code] for code in Code if code in found and code in wanted)
        return Diagnosis(queue.name, tuple(chosen), items, dry_run)

    findings = list(_about_server_and_name(queue))
    # If one of the queue's own keys has the wrong type, the queue cannot be read.
    if wrong := list(wrong_structures(queue)):
        return diagnosis([*findings, _about_keys(Code.WRONG_TYPE, wrong)], None)
    look, totals = FirstLook(queue.now_ms()), Totals()
    suspects, about_keys = _first_look(queue, look, totals)
    # Keys of the wrong type have a finding of their own.
    suspects = _only(suspects, lambda _, code: code in wanted and code is not Code.WRONG_TYPE)
    findings += about_keys
    if suspects:
        queue.clock.sleep(grace_s)
    found, in_cleaning = _second_look(queue, suspects, look)
    fixed: dict[Code, set[bytes]] = {}
    if fix and found:
        with CleanLock(queue, dry_run=dry_run) as lock:
            fixed = _Fixer(queue, look, dry_run).fix_all(found, in_cleaning, lock)

    def is_left(item_id: bytes, code: Code) -> bool:
        fixes = (code, *(_RESOLVED_BY.get(code, ()) if dry_run else ()))
        return not any(item_id in fixed.get(each, ()) for each in fixes)

    left = _only(found, is_left)
    if fixed and not dry_run:
        # Other clients may have fixed the rest, or it is gone.
        left, _ = _second_look(queue, left, look)
    for code in Code:
        if ids := _with(found, code):
            remaining = [item_id for item_id in ids if code in left.get(item_id, ())]
            examples = tuple(dict.fromkeys([*remaining, *ids]))
            shown = examples if all_ids else examples[:EXAMPLES]
            number = len(fixed.get(code, ()))
            reason = None
            if code is Code.MOVING:
                reason = next(facts_of(queue, shown[:1])).reason
            findings.append(Finding(code, len(ids), shown, False, number, len(remaining), reason))
    return diagnosis(findings, totals.items)


def _about_keys(code: Code, keys: Sequence[bytes], count: int | None = None) -> Finding:
    count = len(keys) if count is None else count
    return Finding(code, count, tuple(keys[:EXAMPLES]), True, 0, count)


def _about_server_and_name(queue: Queue) -> Iterator[Finding]:
    durability = server_status(queue.connection).durability
    if durability.may_evict:
        yield _about_keys(Code.EVICTING_SERVER, [(durability.eviction or "").encode()])
    if durability.persists is False:
        yield _about_keys(Code.NO_PERSISTENCE, [], 1)
    if hash_tag(queue.name) is None:
        yield _about_keys(Code.NO_HASH_TAG, [queue.name])


def _first_look(
    queue: Queue, look: FirstLook, totals: Totals
) -> tuple[_Problems, Iterator[Finding]]:
    """All IDs that look broken, even between two commands of their worker; what is about keys."""
    suspects: _Problems = {}
    listed: set[bytes] = set()
    # Queues without lists whose data look like items that lost their entries.
    outsiders: dict[bytes, None] = {}
    notes = KeyNotes(queue)

    def note(facts: Facts) -> None:
        if codes := findings_about(facts):
            suspects[facts.item_id] = codes
            if not _OF_ONE_ITEM.isdisjoint(codes):
                look.note(facts)
        else:
            suspects.pop(facts.item_id, None)

    def note_listed(facts: Facts) -> None:
        listed.add(facts.item_id)
        note(facts)

    def note_keys(page: list[bytes]) -> None:
        for facts in probe(queue, [i for i in notes.add(page) if i not in listed]):
            codes = tuple(code for code in findings_about(facts) if code in _OF_LEASES)
            if codes:
                suspects[facts.item_id] = codes

    # The survey looks up its suspects everywhere, so their facts replace those read before.
    for facts in survey_facts(queue, on_listed=note_listed, on_keys=note_keys, totals=totals):
        note(facts)
        is_nowhere = not (facts.is_listed or facts.has_schedule_entry)
        if facts.has_data and is_nowhere and may_be_in_nested_queue(facts.item_id):
            outsiders[owner_of_data(queue.keys, facts.item_id)] = None

    def about_keys() -> Iterator[Finding]:
        names = dict.fromkeys([*notes.nested, *outsiders, *shadowed_by_name(queue)])
        yield _about_keys(Code.WRONG_TYPE, notes.wrong_keys())
        yield _about_keys(Code.SHADOWED_NAME, list(names))
        yield _about_keys(Code.FOREIGN_KEY, notes.examples, notes.unowned)

    return suspects, about_keys()


def _only(problems: _Problems, accepts: Callable[[bytes, Code], bool]) -> _Problems:
    chosen = {i: tuple(c for c in codes if accepts(i, c)) for i, codes in problems.items()}
    return {item_id: codes for item_id, codes in chosen.items() if codes}


def _with(problems: _Problems, code: Code) -> list[bytes]:
    return [item_id for item_id, codes in problems.items() if code in codes]


def _second_look(
    queue: Queue, suspects: _Problems, look: FirstLook
) -> tuple[_Problems, set[bytes]]:
    """The problems that the suspects still have, and the suspects in the list of 0.1 cleaners."""
    found: _Problems = {}
    in_cleaning: set[bytes] = set()
    for facts in facts_of(queue, suspects.keys(), digests=True):
        if facts.in_cleaning:
            in_cleaning.add(facts.item_id)
        is_same = look.is_same(facts)
        found[facts.item_id] = tuple(
            code
            for code in findings_about(facts)
            if code in suspects[facts.item_id] and (is_same or code not in _OF_ONE_ITEM)
        )
    return _only(found, lambda _, __: True), in_cleaning


class _Fixer(NamedTuple):
    """Fixes the IDs of findings; each method yields the IDs that it fixed."""

    queue: Queue
    look: FirstLook
    dry_run: bool

    def fix_all(
        self, found: _Problems, in_cleaning: set[bytes], lock: CleanLock
    ) -> dict[Code, set[bytes]]:
        """Fix what was seen twice; return the fixed IDs by code."""
        fixed: dict[Code, set[bytes]] = {}
        returned: set[bytes] = set()
        for code, fix in _FIXES.items():
            ids = _with(found, code)
            if code is Code.STALE_SCHEDULE:
                # Returning an item also removed its entry.
                fixed[code] = returned.intersection(ids)
                ids = [item_id for item_id in ids if item_id not in returned]
            if ids:
                done = set(lock.kept(fix(self, ids)))
                fixed.setdefault(code, set()).update(done.intersection(ids))
            if code in (Code.ABANDONED, Code.ORPHANED):
                returned |= fixed.get(code, set())
        if not self.dry_run:
            # Returned items need no entry in the list of a dead 0.1 cleaner.
            list(prune(self.queue, "cleaning", returned & in_cleaning))
        return fixed

    def repair(self, ids: Sequence[bytes], *states: State) -> Iterator[bytes]:
        look = self.look if states else None
        batches = repair(self.queue, ids, *states, look=look, dry_run=self.dry_run)
        return (item_id for batch in batches for item_id in batch.ids)

    def prune(self, where: str, ids: Sequence[bytes]) -> Iterator[bytes]:
        return chain.from_iterable(prune(self.queue, where, ids, dry_run=self.dry_run))

    def drop_ghosts(self, ids: Sequence[bytes]) -> Iterator[bytes]:
        yield from self.repair(ids, State.GHOST)
        for where in ("delayed", "buried"):
            yield from self.prune(where, ids)

    def promote(self, ids: Sequence[bytes]) -> Iterator[bytes]:
        batches = promote(self.queue, only=frozenset(ids), dry_run=self.dry_run)
        return (item_id for batch in batches for item_id in batch.ids)

    def restore_guards(self, ids: Sequence[bytes]) -> Iterator[bytes]:
        return restore_guards(self.queue, ids, dry_run=self.dry_run)

    def delete_endless_leases(self, ids: Sequence[bytes]) -> Iterator[bytes]:
        for batch in in_batches(ids, items_max=BATCH_WRITES):
            args = {"endless_only": True, "dry_run": self.dry_run}
            yield from self.queue.run("delete_stray_leases", *batch, **args)


_FIXES: Mapping[Code, Callable[[_Fixer, Sequence[bytes]], Iterable[bytes]]] = {
    Code.ABANDONED: lambda fixer, ids: fixer.repair(ids, State.ABANDONED),
    Code.ORPHANED: lambda fixer, ids: fixer.repair(ids, State.ORPHANED),
    Code.DUPLICATED: lambda fixer, ids: fixer.repair(ids, State.DUPLICATED),
    Code.GHOST: _Fixer.drop_ghosts,
    Code.EMPTY_ID: _Fixer.drop_ghosts,
    Code.STALE_SCHEDULE: _Fixer.repair,
    Code.UNGUARDED: _Fixer.restore_guards,
    Code.DUE: _Fixer.promote,
    Code.STALE_CLEANING: lambda fixer, ids: fixer.prune("cleaning", ids),
    Code.STALE_RETURNS: lambda fixer, ids: fixer.prune("returns", ids),
    Code.ENDLESS_LEASE: _Fixer.delete_endless_leases,
}
# The findings that can be fixed without a decision by the user.
AUTO_FIXABLE = frozenset(_FIXES)
# Findings without a fix, and those whose fixes remove the entry or the count in question.
_RESOLVED_BY: Mapping[Code, tuple[Code, ...]] = {
    Code.INVALID_SCORE: (
        *(Code.ABANDONED, Code.ORPHANED, Code.GHOST, Code.EMPTY_ID),
        Code.STALE_SCHEDULE,
    ),
    Code.INVALID_RETURNS: (Code.ABANDONED, Code.ORPHANED),
}
