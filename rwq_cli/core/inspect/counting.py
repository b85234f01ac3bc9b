"""Counting a queue's items by state, as deep as is asked for."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.model import Counts, State

_SAMPLE_ITEMS = 100
# So many entries that are next may be ghosts without hiding the age of the item behind them.
_AGES = 10


def count_lengths(
    queue: Queue,
) -> Counts:
    """The lengths of the queue's structures at one instant; everything else is None."""
    waiting, processing, delayed, buried, returned = queue.call_all(
        [
            ("LLEN", queue.keys.main),
            ("LLEN", queue.keys.processing),
            ("ZCARD", queue.keys.delayed),
            ("ZCARD", queue.keys.buried),
            ("HLEN", queue.keys.returns),
        ],
        atomic=True,
    )
    return Counts(queue.keys.name, waiting, processing, delayed, buried, returned)


def count_states(queue: Queue, *, sample_sizes: bool, deep: bool) -> Counts:
    """Counts by state.

    Args:
        queue: The queue.
        sample_sizes: Read the sizes of some waiting items; where the server counts reads as use,
            that makes them look fresh.
        deep: Walk over the whole queue for what no list tells.
    """
    counts = count_lengths(
        queue,
    )
    seconds, microseconds = queue.call("TIME")
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    due = queue.call("ZCOUNT", queue.keys.delayed, "-inf", now_ms)
    counts = _add_processing(queue, counts, due, now_ms)
    counts = _add_waiting(queue, counts, sample_sizes=sample_sizes)
    if not deep:
        return counts
    from rwq_cli.core.inspect.foreign_keys import odd_keys
    from rwq_cli.core.inspect.survey import survey

    results, strays = (
        _Results(
            queue,
        ),
        _StrayLeases(
            queue,
        ),
    )

    def meet(page: list[bytes]) -> None:
        results.meet(page)
        strays.meet(page)

    found = survey(queue, meet)
    ghosts = {*found.main_ghosts, *found.processing_ghosts}
    ghosts.update(item_id for item_id, _ in found.scheduled_ghosts)
    return replace(
        counts,
        returned=found.returned,
        held=(counts.held or 0) + len(found.held),
        orphaned=len(found.orphaned),
        unlisted=len(found.unlisted),
        duplicated=len(found.duplicated),
        ghosts=len(found.main_ghosts) + len(found.processing_ghosts) + len(found.scheduled_ghosts),
        stray_leases=strays.count(ghosts),
        wrong_types=odd_keys(
            queue,
        ).wrong_type.count,
        returns=found.returns,
        results=results.count,
    )


class _StrayLeases:
    """Counts leases without an item among the keys that a walk over all of them meets."""

    def __init__(
        self,
        queue: Queue,
    ) -> None:
        self._queue = queue
        self._without_data: set[bytes] = set()

    def meet(self, page: Sequence[bytes]) -> None:
        """Keep those of a page of keys that look so: nearly always none."""
        from rwq_cli.core.inspect.nested_queues import exclude_nested_queues

        for prefix in (self._queue.keys.lease_prefix, self._queue.keys.old_lease_prefix):
            ids = [key[len(prefix) :] for key in page if key.startswith(prefix)]
            there = self._queue.call_all(
                [("EXISTS", self._queue.keys.item(item_id)) for item_id in ids]
            )
            stray = [item_id for item_id, count in zip(ids, there, strict=True) if not count]
            if stray:
                # They may be those of a queue whose name begins like our leases.
                own = exclude_nested_queues(self._queue, stray, (prefix,))
                self._without_data.update(own)

    def count(self, ghosts: Set[bytes]) -> int:
        """How many are so still, and are of none of these, which are in a list."""
        from rwq_cli.core.inspect.report import probe

        ids = [item_id for item_id in self._without_data if item_id not in ghosts]
        looks = probe(self._queue, ids)
        return sum(look.lease is not None and not look.has_data for look in looks)


class _Results:
    """Counts what is kept of completed items among the keys that a walk over all of them meets."""

    def __init__(
        self,
        queue: Queue,
    ) -> None:
        from rwq_cli.core.items.all_results import ResultCount

        self._queue = queue
        self._count = ResultCount(
            queue,
        )
        self._may_read = True

    @property
    def count(self) -> int | None:
        """How many were met; None where this user may not read them."""
        return self._count.results if self._may_read else None

    def meet(self, page: Sequence[bytes]) -> None:
        """Count those of a page of keys."""
        from rwq_cli.core.inspect.nested_queues import exclude_nested_queues

        prefix = self._queue.keys.result_prefix
        ids = [key[len(prefix) :] for key in page if key.startswith(prefix)]
        if not (ids and self._may_read):
            return
        # They may be those of a queue whose name begins like our results.
        own = exclude_nested_queues(self._queue, ids, (prefix,))
        try:
            self._count.meet(own)
        except PermissionDenied:
            self._may_read = False


def _add_processing(queue: Queue, counts: Counts, due: int, now_ms: int) -> Counts:
    from rwq_cli.core.inspect.cursor import walk_processing
    from rwq_cli.core.inspect.report import seen_in_processing
    from rwq_cli.core.state.rules import SCHEDULED, state_of

    by_state: Counter[State] = Counter()
    soonest_ms: int | None = None
    latest_ms: int | None = None
    stale_delayed, stale_due, stale_buried = set[bytes](), set[bytes](), set[bytes]()
    for page in walk_processing(
        queue,
    ):
        for facts in seen_in_processing(queue, page):
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


def _add_waiting(queue: Queue, counts: Counts, *, sample_sizes: bool) -> Counts:
    """The age of the next item, and payload sizes of a sample from both ends of main."""
    half = _SAMPLE_ITEMS // 2
    oldest, newest = queue.call_all(
        [("LRANGE", queue.keys.main, -half, -1), ("LRANGE", queue.keys.main, 0, half - 1)]
    )
    sample = list(dict.fromkeys(oldest[::-1] + newest))
    if not sample:
        return counts
    commands: list[tuple[object, ...]] = [
        ("OBJECT", "IDLETIME", queue.keys.item(item_id)) for item_id in sample[:_AGES]
    ]
    if sample_sizes:
        commands += [("STRLEN", queue.keys.item(item_id)) for item_id in sample]
        commands += [("EXISTS", queue.keys.item(item_id)) for item_id in sample]
    replies = queue.call_all(commands, return_errors=True)
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
