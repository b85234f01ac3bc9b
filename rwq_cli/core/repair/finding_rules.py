"""What is known of IDs that look broken, many at once, and which findings that comes to."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing
from rwq_cli.core.inspect.foreign_keys import may_be_nested
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.model import Facts, Lease, State
from rwq_cli.core.repair.findings import Code
from rwq_cli.core.state.rules import is_guard, state_of

# A due item is late when nobody promoted it in the time that its guard outlives its due time.
LATE_MS = 60_000
# Every ID costs a few reads, and one call should be short.
_EXAMINED_IDS = 500
_FACTS_IDS = 500

_LISTED = (State.WAITING, State.LEASED, State.HELD, State.ABANDONED, State.DUPLICATED)


def examine(queue: Queue, ids: Collection[bytes]) -> str:
    """What each ID's own keys say, a letter each; see `scripts/examine.lua`."""
    replies: list[bytes] = [
        queue.run("examine", *batch) for batch in in_batches(ids, items_max=_EXAMINED_IDS)
    ]
    return b"".join(replies).decode("ascii")


def facts_of_many(queue: Queue, ids: Collection[bytes]) -> Iterator[Facts]:
    """The facts about many IDs: the lists are read in pages, once for all of them.

    Main is read before processing, and again after it: an item that travels from one to the other
    meanwhile is met in the one where it is for good, and not in both or in neither.

    Yields:
        The facts of each, in order.
    """
    if not ids:
        return
    sought = frozenset(ids)
    entries = lengths_of(
        queue, queue.keys.main, queue.keys.processing, queue.keys.main, queue.keys.cleaning
    )
    queue.progress.begin("looking again", entries)
    before = _entries(walk_list(queue, queue.keys.main, newest_first=True), sought)
    working = _entries(
        walk_processing(
            queue,
        ),
        sought,
    )
    after = _entries(walk_list(queue, queue.keys.main, newest_first=True), sought)
    noted = _entries(walk_list(queue, queue.keys.cleaning, newest_first=True), sought)
    for batch in in_batches(ids, items_max=_FACTS_IDS):
        seen = probe(queue, batch)
        time, due, buried, returns = queue.call_all(
            [
                ("TIME",),
                ("ZMSCORE", queue.keys.delayed, *batch),
                ("ZMSCORE", queue.keys.buried, *batch),
                ("HMGET", queue.keys.returns, *batch),
            ]
        )
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        for at, (item_id, look) in enumerate(zip(batch, seen, strict=True)):
            in_main, in_processing = _settled(before[item_id], working[item_id], after[item_id])
            yield Facts(
                item_id=item_id,
                has_data=look.has_data,
                in_main=in_main,
                in_processing=in_processing,
                in_cleaning=noted[item_id],
                lease=look.lease,
                due_ms=None if due[at] is None else int(float(due[at])),
                buried_ms=None if buried[at] is None else int(float(buried[at])),
                now_ms=now_ms,
                returns=None if returns[at] is None else int(returns[at]),
                wrong_types={queue.keys.item(item_id): "no string"} if look.wrong_type else {},
            )


def _entries(pages: Iterator[list[bytes]], sought: frozenset[bytes]) -> Counter[bytes]:
    entries: Counter[bytes] = Counter()
    for page in pages:
        entries.update(item_id for item_id in page if item_id in sought)
    return entries


def _settled(before: int, working: int, after: int) -> tuple[int, int]:
    """How often an ID is in main and in processing, by a look at main, the other, main again."""
    if working and not before and after:
        return after, 0
    if working or (before and after):
        return min(before, after), working
    return max(before, after), working


def _is_scheduled(facts: Facts) -> bool:
    return facts.due_ms is not None or facts.buried_ms is not None


def _is_late(facts: Facts) -> bool:
    return (
        state_of(facts) is State.DUE
        and facts.due_ms is not None
        and facts.due_ms + LATE_MS < facts.now_ms
    )


def _is_unguarded(facts: Facts) -> bool:
    """Whether a cleaner that knows only of leases will bring it back before its time."""
    if state_of(facts) not in (State.DELAYED, State.BURIED):
        return False
    if facts.lease is None:
        return True
    ttl_ms = facts.lease.ttl_ms
    if not is_guard(facts.lease) or ttl_ms is None:
        return False
    # One that is both is taken for buried.
    if facts.buried_ms is not None or facts.due_ms is None:
        return True
    return ttl_ms < facts.due_ms - facts.now_ms


def _is_endless_stray(facts: Facts) -> bool:
    lease = facts.lease
    if facts.has_data or facts.wrong_types or lease is None or lease.ends:
        return False
    if may_be_nested(facts.item_id):
        return False
    # The guard of a buried ghost goes with its entry.
    return not (facts.buried_ms is not None and is_guard(lease))


def _is(state: State) -> Callable[[Facts], bool]:
    return lambda facts: state_of(facts) is state


def findings_about(facts: Facts, holders: Collection[bytes]) -> list[Code]:
    """What the doctor would find wrong with one ID.

    Args:
        facts: The facts about it.
        holders: The holders that its lease keys name.
    """
    if facts.wrong_types:
        return [Code.WRONG_TYPE]
    # A guard of ours beside a session's lease is nobody's.
    sessions = {holder for holder in holders if not is_guard(Lease(holder, None))}
    shared = len(sessions) > 1
    return [
        code
        for code, holds in HOLDS.items()
        if holds(facts)
        and (code is not Code.TWO_HOLDERS or shared)
        and (code is not Code.EMPTY_ID or not facts.item_id)
    ]


# What the facts must say for a finding to be real.
HOLDS: Mapping[Code, Callable[[Facts], bool]] = {
    Code.HELD: _is(State.HELD),
    Code.DUPLICATED: _is(State.DUPLICATED),
    Code.TWO_HOLDERS: lambda facts: facts.has_data and facts.lease is not None,
    Code.ABANDONED: _is(State.ABANDONED),
    Code.ORPHANED: _is(State.ORPHANED),
    Code.UNLISTED: _is(State.UNLISTED),
    Code.DUE: _is_late,
    Code.UNGUARDED: _is_unguarded,
    Code.GHOST: _is(State.GHOST),
    Code.ENDLESS_LEASE: _is_endless_stray,
    Code.STALE_SCHEDULE: lambda facts: _is_scheduled(facts) and state_of(facts) in _LISTED,
    Code.STALE_CLEANING: lambda facts: bool(
        facts.in_cleaning
        and (not facts.has_data or facts.in_main or facts.in_processing or _is_scheduled(facts))
    ),
    Code.EMPTY_ID: lambda facts: bool(
        facts.has_data or facts.in_main or facts.in_processing or _is_scheduled(facts)
    ),
    Code.STRAY_LEASE: lambda facts: (
        not facts.has_data
        and facts.lease is not None
        and facts.lease.ends
        and not may_be_nested(facts.item_id)
    ),
    Code.STALE_RETURNS: lambda facts: facts.returns is not None and not facts.has_data,
}
