"""The doctor: finds the problems of a queue, and fixes those that need no decision.

A finding about the state of an ID must be seen by two looks, a grace period apart: an item between
two commands of its worker looks broken only once. Findings about the server, the name and the keys
of others need one look. The fixes are those of the cleans, and a few more scripts. Each checks
again as it acts, so that concurrent doctors and cleaners fix an ID only once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.foreign_keys import EXAMPLES, ForeignKeys, Tally, shadowed_by_name
from rwq_cli.core.inspect.keyspace import ids_of, may_be_in_nested_queue, wrong_types
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.report import wrong_structures
from rwq_cli.core.inspect.results import invalid_results
from rwq_cli.core.inspect.survey import Totals, survey_facts
from rwq_cli.core.items.prune import prune
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.keys import hash_tag, is_key_of, owner_of_structure
from rwq_cli.core.model import State
from rwq_cli.core.repair.finding_rules import findings_about
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.core.repair.lock import CleanLock
from rwq_cli.core.repair.repairs import remove_stale_schedule, repair, restore_guards, without
from rwq_cli.core.server.durability import durability_of
from rwq_cli.core.state.first_look import FirstLook
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts

# By ID, its problems.
_Suspects = dict[bytes, tuple[Code, ...]]
# By code, the IDs that have it.
_Found = dict[Code, dict[bytes, None]]

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
    """Find the problems of a queue, and optionally fix them.

    Args:
        queue: The queue.
        codes: The findings to look for and to fix; None for all.
        fix: Fix the findings in `AUTO_FIXABLE`.
        grace_s: Seconds between the two looks, if the first saw a problem.
        dry_run: Change nothing, and report what would be done.
        all_ids: Give all IDs of a finding as examples instead of five.
    """
    queue.connection.set_no_touch()
    wanted = frozenset(Code if codes is None else codes)
    findings = list(_about_server_and_name(queue))
    wrong = Tally()
    for key in wrong_structures(queue):
        wrong.add(key)
    if wrong.count:
        # If one of the queue's own keys has the wrong type, the queue cannot be read.
        findings.append(_about_keys(Code.WRONG_TYPE, wrong))
        return _diagnosis(queue, findings, wanted, None, dry_run)
    first = _FirstLook(queue)
    suspects = _only(first.suspects(), wanted)
    findings += first.findings()
    if suspects:
        queue.clock.sleep(grace_s)
    found, in_cleaning = _second_look(queue, suspects, first.look)
    fixed: dict[Code, set[bytes]] = {}
    if fix and found:
        with CleanLock(queue, dry_run=dry_run) as lock:
            fixed = _fix(queue, found, first.look, in_cleaning, lock, dry_run)
    left = _left_after(queue, found, fixed, first.look, dry_run)
    for code, ids in found.items():
        remaining = left.get(code, {})
        examples = (*(i for i in ids if i in remaining), *(i for i in ids if i not in remaining))
        shown = examples if all_ids else examples[:EXAMPLES]
        number = len(fixed.get(code, ()))
        findings.append(Finding(code, len(ids), shown, False, number, len(remaining)))
    return _diagnosis(queue, findings, wanted, first.totals.items, dry_run)


def _left_after(
    queue: Queue,
    found: _Found,
    fixed: Mapping[Code, Collection[bytes]],
    look: FirstLook,
    dry_run: bool,
) -> _Found:
    """The problems that are left after the fixes."""
    left: _Found = {code: without(ids, fixed.get(code, ())) for code, ids in found.items()}
    if fixed and not dry_run:
        # Other clients may have fixed the rest, or it is gone.
        left, _ = _second_look(queue, _by_id(left), look)
    for code, fixes in _RESOLVED_BY.items() if dry_run else ():
        if code in left:
            left[code] = without(left[code], set().union(*(fixed.get(each, ()) for each in fixes)))
    return left


def _diagnosis(
    queue: Queue,
    findings: Iterable[Finding],
    wanted: frozenset[Code],
    items: int | None,
    dry_run: bool,
) -> Diagnosis:
    order = list(Code)
    chosen = sorted(
        (finding for finding in findings if finding.count and finding.code in wanted),
        key=lambda finding: order.index(finding.code),
    )
    return Diagnosis(queue.name, tuple(chosen), items, dry_run)


def _about_keys(code: Code, tally: Tally) -> Finding:
    return Finding(code, tally.count, tuple(tally.examples), True, 0, tally.count)


def _about_server_and_name(queue: Queue) -> Iterator[Finding]:
    durability = durability_of(queue.connection)
    if durability.may_evict:
        yield Finding(Code.EVICTING_SERVER, 1, ((durability.eviction or "").encode(),), True, 0, 1)
    if durability.persists is False:
        yield Finding(Code.NO_PERSISTENCE, 1, (), True, 0, 1)
    if hash_tag(queue.name) is None:
        yield Finding(Code.NO_HASH_TAG, 1, (queue.name,), True, 0, 1)


class _FirstLook:
    """All IDs that look broken, including items between two commands of their worker."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._foreign = ForeignKeys(queue.keys)
        self._wrong: dict[bytes, None] = {}
        self._nested: dict[bytes, None] = {}
        self._suspects: _Suspects = {}
        self._listed: set[bytes] = set()
        self.look = FirstLook(queue.now_ms())
        self.totals = Totals()

    def suspects(self) -> _Suspects:
        """The IDs with their problems."""
        queue = self._queue
        facts_of_suspects = survey_facts(
            queue, on_listed=self._note_listed, on_keys=self._note_keys, totals=self.totals
        )
        # The survey looks up its suspects everywhere, so their facts replace those read before.
        for facts in facts_of_suspects:
            self._note(facts)
        return self._suspects

    def findings(self) -> Iterator[Finding]:
        """The findings about keys."""
        wrong, nesting = Tally(), Tally()
        for key in self._wrong:
            if not is_key_of(key, tuple(self._nested)):
                wrong.add(key)
        for name in (*self._nested, *shadowed_by_name(self._queue)):
            nesting.add(name)
        yield _about_keys(Code.WRONG_TYPE, wrong)
        yield _about_keys(Code.SHADOWED_NAME, nesting)
        yield _about_keys(Code.FOREIGN_KEY, self._foreign.unowned())

    def _note(self, facts: Facts) -> None:
        if codes := findings_about(facts):
            self._suspects[facts.item_id] = codes
            if not _OF_ONE_ITEM.isdisjoint(codes):
                self.look.note(facts)
        else:
            self._suspects.pop(facts.item_id, None)

    def _note_listed(self, facts: Facts) -> None:
        self._listed.add(facts.item_id)
        self._note(facts)

    def _note_keys(self, page: list[bytes]) -> None:
        queue, keys = self._queue, self._queue.keys
        strings = [key for key in page if key.startswith(keys.id_prefixes)]
        for key, kind in wrong_types(queue, strings):
            self._note_wrong(key, kind)
        for key, kind in invalid_results(queue, ids_of(page, keys.result_prefix)):
            self._note_wrong(key, kind)
        leased = dict.fromkeys(ids_of(page, keys.lease_prefix, keys.old_lease_prefix))
        unlisted = [i for i in leased if i not in self._listed and not may_be_in_nested_queue(i)]
        for facts in probe(queue, unlisted):
            codes = tuple(code for code in findings_about(facts) if code in _OF_LEASES)
            if codes:
                self._suspects[facts.item_id] = codes
        ours = (*keys.id_prefixes, keys.result_prefix, keys.undo_prefix)
        for key in page:
            if not key.startswith(ours) and key not in keys.structures and key != keys.clean_lock:
                self._foreign.add(key)

    def _note_wrong(self, key: bytes, kind: str) -> None:
        if owner := owner_of_structure(key, kind):
            self._nested[owner] = None
        else:
            self._wrong[key] = None


def _only(suspects: _Suspects, wanted: frozenset[Code]) -> _Suspects:
    # Keys of the wrong type have a finding of their own.
    wanted -= {Code.WRONG_TYPE}
    chosen = {
        item_id: tuple(code for code in codes if code in wanted)
        for item_id, codes in suspects.items()
    }
    return {item_id: codes for item_id, codes in chosen.items() if codes}


def _second_look(queue: Queue, suspects: _Suspects, look: FirstLook) -> tuple[_Found, set[bytes]]:
    """The problems that the suspects still have, and the suspects in the list of 0.1 cleaners."""
    found: _Found = {}
    in_cleaning: set[bytes] = set()
    for facts in facts_of(queue, suspects.keys(), digests=True):
        if facts.in_cleaning:
            in_cleaning.add(facts.item_id)
        is_same = look.is_same(facts)
        for code in findings_about(facts):
            if code in suspects[facts.item_id] and (is_same or code not in _OF_ONE_ITEM):
                found.setdefault(code, {})[facts.item_id] = None
    return found, in_cleaning


def _by_id(found: _Found) -> _Suspects:
    suspects: _Suspects = {}
    for code, ids in found.items():
        for item_id in ids:
            suspects[item_id] = (*suspects.get(item_id, ()), code)
    return suspects


def _fix(
    queue: Queue,
    found: _Found,
    look: FirstLook,
    in_cleaning: set[bytes],
    lock: CleanLock,
    dry_run: bool,
) -> dict[Code, set[bytes]]:
    """Fix what was seen twice; return the fixed IDs by code."""
    fixed: dict[Code, set[bytes]] = {}
    returned: set[bytes] = set()
    for code, fix in _FIXES.items():
        ids = found.get(code, {})
        if code is Code.STALE_SCHEDULE:
            # Returning an item also removed its entry.
            fixed[code] = returned & ids.keys()
            ids = without(ids, returned)
        if ids:
            done = set(lock.kept(fix(queue, list(ids), look, dry_run)))
            fixed.setdefault(code, set()).update(ids.keys() & done)
        if code in (Code.ABANDONED, Code.ORPHANED):
            returned |= fixed.get(code, set())
    if not dry_run:
        # Returned items need no entry in the list of a dead 0.1 cleaner.
        list(prune(queue, "cleaning", returned & in_cleaning))
    return fixed


# Fixes the IDs of a finding, given what the first look saw; yields the fixed IDs.
_Fix = Callable[[Queue, Sequence[bytes], FirstLook, bool], Iterable[bytes]]


def _repair(*states: State) -> _Fix:
    def fix(queue: Queue, ids: Sequence[bytes], look: FirstLook, dry_run: bool) -> Iterator[bytes]:
        batches = repair(queue, ids, states, look=look, dry_run=dry_run)
        return chain.from_iterable(batch.ids for batch in batches)

    return fix


def _drop_ghosts(
    queue: Queue, ids: Sequence[bytes], look: FirstLook, dry_run: bool
) -> Iterator[bytes]:
    yield from _repair(State.GHOST)(queue, ids, look, dry_run)
    for name in ("delayed", "buried"):
        yield from chain.from_iterable(prune(queue, name, ids, dry_run=dry_run))


def _prune(where: str) -> _Fix:
    return lambda queue, ids, _, dry_run: chain.from_iterable(
        prune(queue, where, ids, dry_run=dry_run)
    )


def _remove_stale_schedule(
    queue: Queue, ids: Sequence[bytes], _look: FirstLook, dry_run: bool
) -> Iterator[bytes]:
    batches = remove_stale_schedule(queue, ids, dry_run=dry_run)
    return chain.from_iterable(batch.ids for batch in batches)


def _promote(
    queue: Queue, ids: Sequence[bytes], _look: FirstLook, dry_run: bool
) -> Iterator[bytes]:
    batches = promote(queue, only=frozenset(ids), dry_run=dry_run)
    return chain.from_iterable(batch.ids for batch in batches)


def _delete_endless_leases(
    queue: Queue, ids: Sequence[bytes], _look: FirstLook, dry_run: bool
) -> Iterator[bytes]:
    for batch in in_batches(ids):
        yield from queue.run("delete_stray_leases", "endless", *batch, dry_run=dry_run)


_FIXES: Mapping[Code, _Fix] = {
    Code.ABANDONED: _repair(State.ABANDONED),
    Code.ORPHANED: _repair(State.ORPHANED),
    Code.DUPLICATED: _repair(State.DUPLICATED),
    Code.GHOST: _drop_ghosts,
    Code.EMPTY_ID: _drop_ghosts,
    Code.STALE_SCHEDULE: _remove_stale_schedule,
    Code.UNGUARDED: lambda queue, ids, _, dry_run: restore_guards(queue, ids, dry_run=dry_run),
    Code.DUE: _promote,
    Code.STALE_CLEANING: _prune("cleaning"),
    Code.STALE_RETURNS: _prune("returns"),
    Code.ENDLESS_LEASE: _delete_endless_leases,
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
