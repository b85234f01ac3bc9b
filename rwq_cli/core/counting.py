"""Counting a queue's items by state, as deep as is asked for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Counts, State

_SAMPLE_ITEMS = 100
# So many entries that are next may be ghosts without hiding the age of the item behind them.
_AGES = 10


def count_lengths(connection: Connection, keys: QueueKeys) -> Counts:
    """The lengths of the queue's structures at one instant; everything else is None.

    Raises:
        ServerError: The server refused, or was lost.
    """
    waiting, processing, delayed, buried, returned = connection.call_all(
        [
            ("LLEN", keys.main),
            ("LLEN", keys.processing),
            ("ZCARD", keys.delayed),
            ("ZCARD", keys.buried),
            ("HLEN", keys.returns),
        ],
        atomic=True,
    )
    return Counts(keys.name, waiting, processing, delayed, buried, returned)


def count_states(
    connection: Connection, keys: QueueKeys, *, sample_sizes: bool, deep: bool
) -> Counts:
    """Counts by state.

    Args:
        connection: The server.
        keys: The queue.
        sample_sizes: Read the sizes of some waiting items; where the server counts reads as use,
            that makes them look fresh.
        deep: Walk over the whole queue for what no list tells.

    Raises:
        ServerError: The server refused, or was lost.
    """
    counts = count_lengths(connection, keys)
    seconds, microseconds = connection.call("TIME")
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    due = connection.call("ZCOUNT", keys.delayed, "-inf", now_ms)
    counts = _add_processing(connection, keys, counts, due, now_ms)
    counts = _add_waiting(connection, keys, counts, sample_sizes=sample_sizes)
    if not deep:
        return counts
    from rwq_cli.core.survey import survey

    results = _Results(connection, keys)
    found = survey(connection, keys, results.meet)
    return replace(
        counts,
        held=(counts.held or 0) + len(found.held),
        orphaned=len(found.orphaned),
        unlisted=len(found.unlisted),
        duplicated=len(found.duplicated),
        ghosts=len(found.main_ghosts) + len(found.processing_ghosts) + len(found.scheduled_ghosts),
        returns=found.returns,
        results=results.count,
    )


class _Results:
    """Counts what is kept of completed items among the keys that a walk over all of them meets.

    Of each a number of 64 bits is kept, because a walk may meet a key twice.
    """

    def __init__(self, connection: Connection, keys: QueueKeys) -> None:
        self._connection = connection
        self._keys = keys
        self._numbers: set[int] = set()

    @property
    def count(self) -> int:
        """How many were met."""
        return len(self._numbers)

    def meet(self, page: Sequence[bytes]) -> None:
        """Count those of a page of keys."""
        from rwq_cli.core.nested import without_anothers

        prefix = self._keys.result_prefix
        ids = [key[len(prefix) :] for key in page if key.startswith(prefix)]
        if not ids:
            return
        # The hash may be the counts of a queue whose name begins like our results.
        own = without_anothers(self._connection, self._keys, ids, (prefix,))
        types = self._connection.call_all([("TYPE", prefix + item_id) for item_id in own])
        self._numbers.update(
            hash(item_id) for item_id, kind in zip(own, types, strict=True) if kind == b"hash"
        )


def _add_processing(
    connection: Connection, keys: QueueKeys, counts: Counts, due: int, now_ms: int
) -> Counts:
    from rwq_cli.core.looking import seen_in_processing
    from rwq_cli.core.paging import walk_processing
    from rwq_cli.core.states import SCHEDULED, state_of

    by_state: Counter[State] = Counter()
    soonest_ms: int | None = None
    latest_ms: int | None = None
    stale_delayed, stale_due, stale_buried = set[bytes](), set[bytes](), set[bytes]()
    for page in walk_processing(connection, keys):
        for facts in seen_in_processing(connection, keys, page):
            state = state_of(facts)
            if state in SCHEDULED:
                # Counted there; its entry here means nothing.
                continue
            by_state[state] += 1
            # Counted here, its entry there means nothing.
            if facts.has_data and facts.due_ms is not None:
                stale_delayed.add(facts.item_id)
                if facts.due_ms <= now_ms:
                    stale_due.add(facts.item_id)
            if facts.has_data and facts.buried_ms is not None:
                stale_buried.add(facts.item_id)
            if facts.has_data and facts.lease and facts.lease.ttl_ms is not None:
                ttl_ms = facts.lease.ttl_ms
                soonest_ms = ttl_ms if soonest_ms is None else min(soonest_ms, ttl_ms)
                latest_ms = ttl_ms if latest_ms is None else max(latest_ms, ttl_ms)
    return replace(
        counts,
        # They may have gone since the lengths were read.
        delayed=max(0, counts.delayed - len(stale_delayed)),
        buried=max(0, counts.buried - len(stale_buried)),
        due=max(0, due - len(stale_due)),
        leased=by_state[State.LEASED],
        held=by_state[State.HELD],
        abandoned=by_state[State.ABANDONED],
        lease_soonest_ms=soonest_ms,
        lease_latest_ms=latest_ms,
    )


def _add_waiting(
    connection: Connection, keys: QueueKeys, counts: Counts, *, sample_sizes: bool
) -> Counts:
    """The age of the next item, and payload sizes of a sample from both ends of main."""
    half = _SAMPLE_ITEMS // 2
    oldest, newest = connection.call_all(
        [("LRANGE", keys.main, -half, -1), ("LRANGE", keys.main, 0, half - 1)]
    )
    sample = list(dict.fromkeys(oldest[::-1] + newest))
    if not sample:
        return counts
    commands: list[tuple[object, ...]] = [
        ("OBJECT", "IDLETIME", keys.item(item_id)) for item_id in sample[:_AGES]
    ]
    if sample_sizes:
        commands += [("STRLEN", keys.item(item_id)) for item_id in sample]
        commands += [("EXISTS", keys.item(item_id)) for item_id in sample]
    replies = connection.call_all(commands, tolerate=True)
    ages = replies[: len(sample[:_AGES])]
    idle_s = next((reply for reply in ages if isinstance(reply, int)), None)
    sizes = []
    if sample_sizes:
        rest = replies[len(ages) :]
        strlens, exists = rest[: len(sample)], rest[len(sample) :]
        sizes = [
            size
            for size, there in zip(strlens, exists, strict=True)
            if there == 1 and isinstance(size, int)
        ]
    return replace(
        counts,
        oldest_waiting_s=idle_s,
        payload_sampled=len(sizes),
        payload_min_bytes=min(sizes, default=None),
        payload_median_bytes=sorted(sizes)[(len(sizes) - 1) // 2] if sizes else None,
        payload_max_bytes=max(sizes, default=None),
    )
