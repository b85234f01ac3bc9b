"""Counting a queue's items by state."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE, ListCursor
from rwq_cli.core.inspect.first_items import next_ages
from rwq_cli.core.model import Counts, State
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.probe import probe, states_in_processing

_SAMPLE_ITEMS = 100


def lengths(queue: Queue) -> Counts:
    """The lengths of the queue's structures at one instant; everything else is None."""
    return Counts(queue.name, *queue.call_all(_length_commands(queue), atomic=True))


def _length_commands(queue: Queue) -> list[Command]:
    keys = queue.keys
    lists, zsets = (keys.main, keys.processing), (keys.delayed, keys.buried)
    commands: list[Command] = [("LLEN", key) for key in lists]
    return [*commands, *(("ZCARD", key) for key in zsets), ("HLEN", keys.returns)]


def lengths_and_abandoned(queue: Queue) -> Counts:
    """The lengths, and how many items are abandoned if the processing list is short.

    Of a list with more than `PAGE_SIZE` entries, `abandoned` is None: at most one page is read.
    """
    known = lengths(queue)
    if known.processing > PAGE_SIZE:
        return known
    if known.processing == 0:
        return known._replace(abandoned=0)
    (abandoned,) = count_abandoned([queue])
    if isinstance(abandoned, PermissionDenied):
        return known
    if isinstance(abandoned, ServerError):
        raise abandoned
    return known._replace(abandoned=abandoned)


def count_abandoned(queues: Sequence[Queue]) -> list[int | ServerError]:
    """How many items of each queue are abandoned, in two round trips for all.

    Args:
        queues: The queues, on one connection, with at most `PAGE_SIZE` entries in processing.

    Returns:
        The counts, or the refusals.
    """
    if not queues:
        return []
    pages = queues[0].connection.root.call_all(
        [("LRANGE", queue.keys.processing, -PAGE_SIZE, -1) for queue in queues], return_errors=True
    )
    ids = [[] if isinstance(page, ServerError) else list(dict.fromkeys(page)) for page in pages]
    found = states_in_processing(list(zip(queues, ids, strict=True)))
    counts: list[int | ServerError] = []
    for page, states in zip(pages, found, strict=True):
        if isinstance(page, ServerError):
            counts.append(page)
        elif isinstance(states, ServerError):
            counts.append(states)
        else:
            counts.append(states.count(State.ABANDONED))
    return counts


def count_leased(queue: Queue, ids: Sequence[bytes]) -> int:
    """How many of these items are leased by a worker."""
    return sum(facts.has_data and facts.session is not None for facts in probe(queue, ids))


def counts(queue: Queue, *, deep: bool = False) -> Counts:
    """Counts by state; see `WorkQueue.counts`."""
    return count_states(queue, sample_sizes=queue.connection.set_no_touch(), deep=deep)


def count_states(queue: Queue, *, sample_sizes: bool, deep: bool) -> Counts:
    """Like `counts`.

    Args:
        queue: The queue.
        sample_sizes: Read the sizes of some waiting items, which may reset their idle times.
        deep: See `counts`.
    """
    keys, half = queue.keys, _SAMPLE_ITEMS // 2
    processing = ListCursor(queue, queue.keys.processing)
    *sizes, (seconds, micros), oldest, newest, page = queue.call_all(
        [
            *_length_commands(queue),
            ("TIME",),
            ("LRANGE", keys.main, -half, -1),
            ("LRANGE", keys.main, 0, half - 1),
            processing.first_command(),
        ],
        atomic=True,
    )
    processing.start(page)
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    known, duplicated = Counts(queue.name, *sizes), frozenset[bytes]()
    if deep:
        from rwq_cli.core.inspect.deep_counting import with_survey

        known, duplicated = with_survey(queue, known)
    sample = list(dict.fromkeys(oldest[::-1] + newest))
    known = _with_waiting(queue, known, sample, now_ms, sample_sizes=sample_sizes)
    return _with_processing(queue, known, processing, now_ms, duplicated)


def _with_processing(
    queue: Queue,
    known: Counts,
    processing: Iterable[list[bytes]],
    now_ms: int,
    duplicated: frozenset[bytes],
) -> Counts:
    """Count the items in processing, except those that are known to be duplicated."""
    by_state: Counter[State] = Counter()
    # Entries of the sorted sets whose items are counted in processing.
    stale: Counter[str] = Counter()
    left_ms: list[int] = []
    done = set(duplicated)
    for page in processing:
        fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in done]
        done.update(fresh)
        for facts in probe(queue, fresh, in_processing=1):
            state = facts.state
            if state.is_scheduled:
                # Counted in the sorted set; its entry in processing is stale.
                continue
            by_state[state] += 1
            if facts.has_stale_schedule:
                stale["delayed"] += facts.due_ms is not None
                stale["due"] += facts.due_ms is not None and facts.due_ms <= now_ms
                stale["buried"] += facts.buried_ms is not None
            if state is State.LEASED and facts.session and facts.session.ttl_ms is not None:
                left_ms.append(facts.session.ttl_ms)
    return known._replace(
        # Entries may have been removed since the lengths were read.
        delayed=max(0, known.delayed - stale["delayed"]),
        buried=max(0, known.buried - stale["buried"]),
        due=max(0, (known.due or 0) - stale["due"]),
        leased=by_state[State.LEASED],
        held=(known.held or 0) + by_state[State.HELD],
        abandoned=by_state[State.ABANDONED],
        lease_soonest_ms=min(left_ms, default=None),
        lease_latest_ms=max(left_ms, default=None),
    )


def _with_waiting(
    queue: Queue, known: Counts, sample: Sequence[bytes], now_ms: int, *, sample_sizes: bool
) -> Counts:
    """Add the due items, the age of the next item, and the payload sizes of a sample of main."""
    keys = [queue.keys.item(item_id) for item_id in sample]
    measured = keys if sample_sizes else []
    due, *replies = queue.call_all(
        [
            ("ZCOUNT", queue.keys.delayed, "-inf", now_ms),
            *(("OBJECT", "IDLETIME", key) for key in keys[:1]),
            *((command, key) for key in measured for command in ("EXISTS", "STRLEN")),
        ],
        return_errors=True,
    )
    if isinstance(due, ServerError):
        raise due
    age_s, left = (replies[0] if keys else None), iter(replies[len(keys[:1]) :])
    if keys and age_s is None:
        # It is a ghost.
        age_s = next_ages({queue: sample[0]}).get(queue.name)
    pairs = zip(left, left, strict=True)
    sizes = sorted(size for there, size in pairs if there == 1 and isinstance(size, int))
    return known._replace(
        due=due,
        oldest_waiting_s=age_s if isinstance(age_s, int) else None,
        payload_sampled=len(sizes),
        payload_min_bytes=min(sizes, default=None),
        payload_median_bytes=sizes[(len(sizes) - 1) // 2] if sizes else None,
        payload_max_bytes=max(sizes, default=None),
    )
