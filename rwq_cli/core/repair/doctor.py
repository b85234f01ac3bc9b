"""The doctor: everything that is wrong with a queue, and the cure of what needs no decision.

A finding is real when two looks, a grace period apart, saw the same: what a live worker is in the
middle of looks broken only once. The cures are those of the cleans and a few more scripts, each of
which looks once more as it acts, so that two doctors at once, or a doctor beside cleaners of any
kind, do no more than one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing, walk_scheduled
from rwq_cli.core.inspect.foreign_keys import (
    EXAMPLES,
    Strangers,
    Tally,
    may_be_nested,
    odd_keys,
    shadowed_by_name,
)
from rwq_cli.core.inspect.survey import Survey, survey
from rwq_cli.core.items.promote import promote
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Facts, State
from rwq_cli.core.repair.clean import Sleep, Suspects, mend, unschedule_listed
from rwq_cli.core.repair.finding_rules import HOLDS, LATE_MS, examine, facts_of_many
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.core.repair.guards import restore_guards
from rwq_cli.core.server.config import hash_tag, server_config

# By code, the IDs that look so, in the order in which they were met.
_Suspected = dict[Code, dict[bytes, None]]
# By code, the IDs that looked so twice, with the facts of the second time.
_Seen = dict[Code, dict[bytes, Facts]]
_Cured = dict[Code, set[bytes]]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the doctor found.

    Attributes:
        queue: The queue's name.
        findings: What is wrong, the gravest first.
        items: How many items there are; None where a key of the wrong type forbade the walk.
        dry_run: Whether nothing was changed.
    """

    queue: bytes
    findings: tuple[Finding, ...]
    items: int | None
    dry_run: bool

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is left that a queue should not have."""
        weighty = [f for f in self.findings if f.code.severity is not Severity.NOTE]
        # What a dry run would have cured is still so.
        return not any(f.left or (self.dry_run and f.fixed) for f in weighty)


def diagnose(
    queue: Queue,
    *,
    codes: frozenset[Code],
    fix: bool,
    dry_run: bool,
    grace_s: float,
    sleep: Sleep,
    examples_max: int | None = EXAMPLES,
) -> Diagnosis:
    """Find what is wrong with a queue, and cure it if asked to.

    Args:
        queue: The queue.
        codes: What to look for, and to cure.
        fix: Cure what can be cured without choosing for the user.
        dry_run: Change nothing, and say what would be done.
        grace_s: Seconds between the two looks; it is waited only if the first saw something.
        sleep: Waits for so many seconds.
        examples_max: How many IDs of a finding to give; None for all.
    """
    findings = list(
        _about_server_and_name(
            queue,
        )
    )
    wrong = _wrong_structures(
        queue,
    )
    if wrong.count:
        # While one of the queue's own keys is none, what is healthy cannot be told.
        findings.append(_about_keys(Code.WRONG_TYPE, wrong))
        return _diagnosis(queue.keys, findings, codes, None, dry_run)
    findings += _about_odd_keys(
        queue,
    )
    strangers = Strangers(queue.keys)
    items, suspected = _first_look(queue, strangers)
    findings.append(_about_keys(Code.FOREIGN_KEY, strangers.foreign()))
    suspected = {code: ids for code, ids in suspected.items() if ids and code in codes}
    if suspected:
        sleep(grace_s)
    seen = _second_look(queue, suspected)
    empty = Code.EMPTY_ID in seen
    cured: _Cured = {}
    if fix:
        cured = _would_cure(seen) if dry_run else _cure(queue, seen)
    left = _uncured(seen, cured)
    if cured and not dry_run:
        # What we did not cure another may have, or it is no more.
        left = {code: dict.fromkeys(ids) for code, ids in _second_look(queue, left).items()}
    for code, ids in seen.items():
        # An empty ID has a finding of its own.
        named = [item_id for item_id in ids if item_id or code is Code.EMPTY_ID or not empty]
        finding = _about_ids(code, named, cured.get(code, set()), left.get(code, {}), examples_max)
        findings.append(finding)
    return _diagnosis(queue.keys, findings, codes, items, dry_run)


def _about_ids(
    code: Code,
    ids: Sequence[bytes],
    cured: set[bytes],
    left: dict[bytes, None],
    examples_max: int | None,
) -> Finding:
    remaining = [item_id for item_id in ids if item_id in left]
    others = [item_id for item_id in ids if item_id not in left]
    return Finding(
        code=code,
        count=len(ids),
        examples=tuple((remaining + others)[:examples_max]),
        of_keys=False,
        fixed=sum(item_id in cured for item_id in ids),
        left=len(remaining),
    )


def _diagnosis(
    keys: QueueKeys,
    findings: Iterable[Finding],
    codes: frozenset[Code],
    items: int | None,
    dry_run: bool,
) -> Diagnosis:
    order = list(Code)
    chosen = sorted(
        (finding for finding in findings if finding.count and finding.code in codes),
        key=lambda finding: order.index(finding.code),
    )
    return Diagnosis(keys.name, tuple(chosen), items, dry_run)


def _about_keys(code: Code, tally: Tally) -> Finding:
    return Finding(code, tally.count, tuple(tally.examples), True, 0, tally.count)


def _about_server_and_name(
    queue: Queue,
) -> Iterator[Finding]:
    host = server_config(queue.connection)
    if host.may_evict:
        policy = (host.eviction or "").encode()
        yield Finding(Code.EVICTING_SERVER, 1, (policy,), True, 0, 1)
    if host.persists is False:
        yield Finding(Code.NO_PERSISTENCE, 1, (), True, 0, 1)
    if hash_tag(queue.keys.name) is None:
        yield Finding(Code.NO_HASH_TAG, 1, (queue.keys.name,), True, 0, 1)


def _about_odd_keys(
    queue: Queue,
) -> Iterator[Finding]:
    odd = odd_keys(
        queue,
    )
    yield _about_keys(Code.WRONG_TYPE, odd.wrong_type)
    shadows = Tally()
    for name in (
        *odd.shadowing,
        *shadowed_by_name(
            queue,
        ),
    ):
        shadows.add(name)
    yield _about_keys(Code.SHADOWED_NAME, shadows)


def _wrong_structures(
    queue: Queue,
) -> Tally:
    structures = queue.keys.structures
    types = queue.call_all([("TYPE", key) for key in structures])
    wrong = Tally()
    for (key, expected), found in zip(structures.items(), types, strict=True):
        if found.decode() not in ("none", expected):
            wrong.add(key)
    return wrong


def _first_look(queue: Queue, strangers: Strangers) -> tuple[int, _Suspected]:
    """How many items there are, and all IDs that look broken; whoever is in haste looks so, too."""
    suspected: _Suspected = {code: {} for code in Code}
    # Of what is in processing the leases were seen with it; a number an ID, as in the survey.
    working: set[int] = set()

    def suspect(codes: dict[str, Code], ids: Sequence[bytes]) -> None:
        letters = examine(queue, ids)
        for letter in codes.keys() & set(letters):
            looks_so = [i for i, found in zip(ids, letters, strict=True) if found == letter]
            suspected[codes[letter]].update(dict.fromkeys(looks_so))

    def take_others(page: list[bytes]) -> None:
        for prefix in (queue.keys.lease_prefix, queue.keys.old_lease_prefix):
            length = len(prefix)
            leased = [key[length:] for key in page if key.startswith(prefix)]
            if not working.issuperset(map(hash, leased)):
                elsewhere = [i for i in leased if hash(i) not in working]
                suspect(_OF_LEASED, [i for i in elsewhere if not may_be_nested(i)])
        for key in [key for key in page if not key.startswith(own)]:
            if key not in structures:
                strangers.take(key)

    structures = queue.keys.structures
    own = (queue.keys.lease_prefix, queue.keys.old_lease_prefix, queue.keys.result_prefix)
    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
    for page in walk_processing(
        queue,
    ):
        suspect(_OF_WORKING, page)
        working.update(map(hash, page))
    found = survey(queue, take_others)
    for code, ids in (
        (Code.ORPHANED, found.orphaned),
        (Code.UNLISTED, found.unlisted),
        (Code.HELD, found.held),
        (Code.GHOST, found.main_ghosts),
        (Code.GHOST, found.processing_ghosts),
        (Code.GHOST, [item_id for item_id, _ in found.scheduled_ghosts]),
        (Code.DUPLICATED, found.duplicated),
        (Code.STALE_CLEANING, found.stale_cleaning),
        (Code.STALE_RETURNS, found.stale_returns),
    ):
        suspected[code].update(dict.fromkeys(ids))
    # In main as well, it is neither abandoned nor held: a worker may take it up in a moment.
    for code in (Code.ABANDONED, Code.HELD):
        for item_id in suspected[code].keys() & suspected[Code.DUPLICATED]:
            del suspected[code][item_id]
    _suspect_scheduled(queue, suspected, suspect)
    if b"" in suspected[Code.GHOST] or queue.call("EXISTS", queue.keys.item(b"")):
        suspected[Code.EMPTY_ID][b""] = None
    return found.items, suspected


# By the letters of `examine`, what an ID may be that was met in processing, ...
_OF_WORKING = {
    "a": Code.ABANDONED,
    "h": Code.HELD,
    "2": Code.TWO_HOLDERS,
    "-": Code.GHOST,
    "s": Code.STRAY_LEASE,
    "e": Code.ENDLESS_LEASE,
}
# ... as the ID of a lease, ...
_OF_LEASED = {
    "2": Code.TWO_HOLDERS,
    "s": Code.STRAY_LEASE,
    "e": Code.ENDLESS_LEASE,
    "h": Code.HELD,
}
# ... and in the delayed or buried zset.
_OF_SCHEDULED = {"a": Code.UNGUARDED, "w": Code.UNGUARDED}


def _suspect_scheduled(
    queue: Queue,
    suspected: _Suspected,
    suspect: Callable[[dict[str, Code], Sequence[bytes]], None],
) -> None:
    seconds, microseconds = queue.call("TIME")
    late_ms = int(seconds) * 1000 + int(microseconds) // 1000 - LATE_MS
    scheduled: set[bytes] = set()
    for name in ("delayed", "buried"):
        for page in walk_scheduled(queue, name):
            ids = [item_id for item_id, _ in page]
            scheduled.update(ids)
            suspect(_OF_SCHEDULED, ids)
            if name == "delayed":
                suspected[Code.DUE].update(
                    (item_id, None) for item_id, due_ms in page if due_ms <= late_ms
                )
    listed = _in_lists(queue, frozenset(scheduled))
    suspected[Code.STALE_SCHEDULE].update(dict.fromkeys(listed))


def _second_look(queue: Queue, suspected: _Suspected) -> _Seen:
    """Which of the suspected IDs are what they looked."""
    union = list(dict.fromkeys(chain.from_iterable(suspected.values())))
    codes_of: dict[bytes, list[Code]] = {}
    for code, ids in suspected.items():
        for item_id in ids:
            codes_of.setdefault(item_id, []).append(code)
    seen: _Seen = {}
    for facts in facts_of_many(queue, union):
        for code in codes_of[facts.item_id]:
            if HOLDS[code](facts):
                seen.setdefault(code, {})[facts.item_id] = facts
    if shared := seen.get(Code.TWO_HOLDERS):
        letters = zip(shared, examine(queue, shared), strict=True)
        still = {item_id: shared[item_id] for item_id, letter in letters if letter == "2"}
        seen[Code.TWO_HOLDERS] = still
    return {code: ids for code, ids in seen.items() if ids}


def _would_cure(seen: _Seen) -> _Cured:
    return {
        code: {
            item_id
            for item_id, facts in ids.items()
            if code is not Code.EMPTY_ID or not facts.has_data
        }
        if code.auto_fixable
        else set()
        for code, ids in seen.items()
    }


def _uncured(seen: _Seen, cured: _Cured) -> _Suspected:
    return {
        code: dict.fromkeys(item_id for item_id in ids if item_id not in cured.get(code, ()))
        for code, ids in seen.items()
    }


def _cure(queue: Queue, seen: _Seen) -> _Cured:
    """Act on what was seen twice; every script looks once more."""
    cured: _Cured = {code: set() for code in seen}
    for action in mend(queue, *_for_mending(seen)):
        code = _MENDED.get(action.where or "")
        for candidate in (code,) if code else (*_BY_STATE, Code.EMPTY_ID):
            if action.item_id in seen.get(candidate, ()):
                cured[candidate].add(action.item_id)
    # What was in the hand of a dead cleaner of 0.1 and now waits again need not be noted there.
    noted = [
        facts.item_id
        for code in _BY_STATE
        for facts in seen.get(code, {}).values()
        if facts.in_cleaning and facts.item_id in cured[code]
    ]
    list(mend(queue, Suspects(), Survey(stale_cleaning=noted)))
    for batch in in_batches(seen.get(Code.ENDLESS_LEASE, ())):
        cured[Code.ENDLESS_LEASE].update(queue.run("drop_leases", *batch))
    for item_id in _reschedule(queue, seen):
        for code in _BY_SCHEDULE:
            if item_id in seen.get(code, ()):
                cured[code].add(item_id)
    return cured


# By the structure that a clean's act was about, where that alone says which finding it cured.
_MENDED = {"cleaning": Code.STALE_CLEANING, "returns": Code.STALE_RETURNS}
_BY_STATE = (Code.ABANDONED, Code.ORPHANED, Code.DUPLICATED, Code.GHOST)
_BY_SCHEDULE = (Code.DUE, Code.UNGUARDED, Code.STALE_SCHEDULE)


def _for_mending(seen: _Seen) -> tuple[Suspects, Survey]:
    """What was seen, as the cleans' acts take it."""
    suspects = Suspects()
    found = Survey(
        orphaned=list(seen.get(Code.ORPHANED, ())),
        duplicated=list(seen.get(Code.DUPLICATED, ())),
        stale_cleaning=list(seen.get(Code.STALE_CLEANING, ())),
        stale_returns=list(seen.get(Code.STALE_RETURNS, ())),
    )
    suspects.states.update(dict.fromkeys(seen.get(Code.ABANDONED, ()), State.ABANDONED))
    empty = seen.get(Code.EMPTY_ID, {})
    ghosts = {
        **seen.get(Code.GHOST, {}),
        **{item_id: facts for item_id, facts in empty.items() if not facts.has_data},
    }
    for item_id, facts in ghosts.items():
        if facts.in_processing:
            suspects.states[item_id] = State.GHOST
        if facts.in_main:
            found.main_ghosts.append(item_id)
        if facts.due_ms is not None:
            found.scheduled_ghosts.append((item_id, "delayed"))
        if facts.buried_ms is not None:
            found.scheduled_ghosts.append((item_id, "buried"))
    for facts in chain(seen.get(Code.ABANDONED, {}).values(), ghosts.values()):
        if facts.in_processing > 1:
            suspects.repeated.add(facts.item_id)
    return suspects, found


def _reschedule(queue: Queue, seen: _Seen) -> Iterator[bytes]:
    """Set right what is in the zsets; yields the IDs for which that was done.

    What has no guard is guarded before the lists are read once more: from then on no cleaner pushes
    it, so that what is in no list stays so.
    """
    listed = dict.fromkeys(seen.get(Code.STALE_SCHEDULE, ()))
    due = seen.get(Code.DUE, {})
    listed.update(dict.fromkeys(i for i, facts in due.items() if facts.in_processing))
    guarded = restore_guards(queue, seen.get(Code.UNGUARDED, ()))
    listed.update(dict.fromkeys(guarded.listed))
    yield from guarded.anew
    yield from unschedule_listed(queue, listed)
    if due:
        for promoted in promote(
            queue,
        ):
            yield from chain(promoted.ids, promoted.dropped)


def _in_lists(queue: Queue, sought: frozenset[bytes]) -> set[bytes]:
    """Which of the IDs are in main or in processing."""
    met: set[bytes] = set()
    if sought:
        for page in chain(
            walk_list(queue, queue.keys.main, newest_first=True),
            walk_processing(
                queue,
            ),
        ):
            met |= sought.intersection(page)
    return met
