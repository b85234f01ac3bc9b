"""Counting a queue's items by state."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from math import inf
from typing import Any, NamedTuple

from rwq_cli.core.clock import unix_ms
from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.ages import believed
from rwq_cli.core.inspect.cursor import PAGE_SIZE, ListCursor
from rwq_cli.core.inspect.queues import NEXT_ENTRIES
from rwq_cli.core.inspect.server_status import status_commands, status_from
from rwq_cli.core.model import Counts, State
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.reads import read_facts, read_states, states_from

_SAMPLE_ITEMS = 100
# How long abandoned items are counted for an overview.
COUNT_S = 1.0


class Taken(NamedTuple):
    """How many entries of processing are abandoned, and how many are not."""

    abandoned: int = 0
    running: int = 0
    # Whether there are more, and the time was over before they were read.
    is_least: bool = False


def lengths(queue: Queue) -> Counts:
    """The lengths of the queue's structures at one instant; everything else is None."""
    return Counts(queue.name, *queue.call_all(length_commands(queue), atomic=True))


def length_commands(queue: Queue) -> list[Command]:
    """The commands that read the lengths, in the order of the fields of `Counts`."""
    keys = queue.keys
    lists, zsets = (keys.main, keys.processing), (keys.delayed, keys.buried)
    commands: list[Command] = [("LLEN", key) for key in lists]
    return [*commands, *(("ZCARD", key) for key in zsets), ("HLEN", keys.returns)]


def lengths_and_abandoned(queue: Queue, *, within_s: float = COUNT_S) -> Counts:
    """The lengths, and how many items are abandoned, as far as the time allows; None if this user
    may not read the leases, or no script can."""
    counted = lengths(queue)
    if counted.delayed:
        due = queue.call("ZCOUNT", queue.keys.delayed, "-inf", queue.now_ms())
        counted = counted._replace(due=due)
    if counted.processing and not queue.is_in_one_slot:
        return counted
    (entries,) = count_taken([queue], within_s=within_s) if counted.processing else [Taken()]
    if isinstance(entries, Taken):
        return counted._replace(abandoned=entries.abandoned, is_least=entries.is_least)
    if isinstance(entries, PermissionDenied):
        return counted
    raise entries


def count_taken(queues: Sequence[Queue], *, within_s: float = COUNT_S) -> list[Taken | ServerError]:
    """Count the abandoned items of queues on one connection, the longest leased first, in two round
    trips for all. Of processing, more than a page is read only if there is time."""
    if not queues:
        return []
    clock = queues[0].clock
    ends_s = clock.monotonic() + within_s
    cursors = [ListCursor(queue, queue.keys.processing, page_size=PAGE_SIZE) for queue in queues]
    call_all = queues[0].connection.root.call_all
    pages = call_all([cursor.first_command() for cursor in cursors], return_errors=True)
    ids = [[] if isinstance(page, ServerError) else list(dict.fromkeys(page)) for page in pages]
    args: dict[str, Any] = {"in_main": 0, "in_processing": 1, "digests_too": False}
    asked = zip(queues, ids, strict=True)
    # A script needs an ID.
    commands = [queue.script("states", *(entries or [b""]), **args) for queue, entries in asked]
    rows = zip(queues, cursors, ids, pages, call_all(commands, return_errors=True), strict=True)
    counts: list[Taken | ServerError] = []
    for queue, cursor, entries, page, reply in rows:
        refusals = [answer for answer in (page, reply) if isinstance(answer, ServerError)]
        if refusals:
            counts.append(refusals[0])
            continue
        by_state, is_least = Counter(states_from(reply)[: len(entries)]), False
        if len(page) == PAGE_SIZE:
            cursor.start(page)
            next(cursor)
            for rest in cursor:
                by_state.update(read_states(queue, list(dict.fromkeys(rest)), in_processing=1))
                if is_least := clock.monotonic() > ends_s:
                    break
        abandoned = by_state[State.ABANDONED]
        counts.append(Taken(abandoned, by_state.total() - abandoned, is_least))
    return counts


def counts(queue: Queue, *, deep: bool = False, within_s: float = COUNT_S) -> Counts:
    """See `WorkQueue.counts`. Unless it is `deep`, what is in processing is told apart as far as
    the time allows."""
    # Sampling the sizes of waiting items must not reset their idle times.
    samples_sizes = queue.connection.set_no_touch()
    keys, half = queue.keys, _SAMPLE_ITEMS // 2
    processing = ListCursor(queue, keys.processing, page_size=PAGE_SIZE)
    *sizes, now, oldest, newest, page = queue.call_all(
        [
            *length_commands(queue),
            ("TIME",),
            ("LRANGE", keys.main, -half, -1),
            ("LRANGE", keys.main, 0, half - 1),
            processing.first_command(),
        ],
        atomic=True,
    )
    processing.start(page)
    now_ms = unix_ms(now)
    counted = Counts(queue.name, *sizes)
    duplicated: Set[bytes] = frozenset()
    if deep:
        counted, duplicated = _with_survey(queue, counted)
    sample = list(dict.fromkeys(oldest[::-1] + newest))
    counted = _with_waiting(queue, counted, sample, now_ms, samples_sizes=samples_sizes)
    return _with_processing(
        queue, counted, processing, now_ms, duplicated, inf if deep else within_s
    )


def _with_processing(
    queue: Queue,
    counted: Counts,
    processing: Iterable[list[bytes]],
    now_ms: int,
    duplicated: Set[bytes],
    within_s: float,
) -> Counts:
    """Count the items in processing, except those that are known to be duplicated."""
    ends_s, is_least = queue.clock.monotonic() + within_s, False
    by_state: Counter[State] = Counter()
    # Entries of the sorted sets whose items are counted in processing.
    stale: Counter[str] = Counter()
    left_ms: list[int] = []
    done = set(duplicated)
    for page in processing:
        if is_least := bool(by_state) and queue.clock.monotonic() > ends_s:
            break
        fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in done]
        done.update(fresh)
        for facts in read_facts(queue, fresh, in_processing=1):
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
    if not is_least:
        counted = counted._replace(
            leased=by_state[State.LEASED],
            held=(counted.held or 0) + by_state[State.HELD],
            lease_soonest_ms=min(left_ms, default=None),
            lease_latest_ms=max(left_ms, default=None),
        )
    return counted._replace(
        # Entries may have been removed since the lengths were read.
        delayed=max(0, counted.delayed - stale["delayed"]),
        buried=max(0, counted.buried - stale["buried"]),
        due=max(0, (counted.due or 0) - stale["due"]),
        abandoned=by_state[State.ABANDONED],
        is_least=is_least,
    )


def _with_waiting(
    queue: Queue, counted: Counts, sample: Sequence[bytes], now_ms: int, *, samples_sizes: bool
) -> Counts:
    """Add the due items, the age of the next item, and the payload sizes of a sample of main."""
    keys = [queue.keys.item(item_id) for item_id in sample]
    following = keys[:NEXT_ENTRIES]
    due, history, *replies = queue.call_all(
        [
            ("ZCOUNT", queue.keys.delayed, "-inf", now_ms),
            ("XREVRANGE", queue.keys.history, "+", "-", "COUNT", 1),
            *(status := status_commands(queue.keys.absent)),
            *(("OBJECT", "IDLETIME", key) for key in following),
            *((word, key) for key in keys if samples_sizes for word in ("EXISTS", "STRLEN")),
        ],
        return_errors=True,
    )
    if isinstance(due, ServerError):
        raise due
    server, replies = status_from(replies[: len(status)]), replies[len(status) :]
    # The first may be ghosts.
    ages = (believed(idle_s, server.uptime_s) for idle_s in replies[: len(following)])
    rest = iter(replies[len(following) :])
    pairs = zip(rest, rest, strict=True)
    sizes = sorted(size for exists, size in pairs if exists == 1 and isinstance(size, int))
    return counted._replace(
        due=due,
        oldest_waiting_s=next((age for age in ages if age is not None), None),
        server=server,
        # An entry's ID is its minute.
        last_clean_ms=int(history[0][0].split(b"-")[0])
        if isinstance(history, list) and history
        else None,
        payload_sampled=len(sizes),
        payload_min_bytes=min(sizes, default=None),
        payload_median_bytes=sizes[(len(sizes) - 1) // 2] if sizes else None,
        payload_max_bytes=max(sizes, default=None),
    )


def _with_survey(queue: Queue, counted: Counts) -> tuple[Counts, Set[bytes]]:
    """Add the counts that need a walk over the whole queue; also return the duplicated items."""
    from rwq_cli.core.inspect.keyspace import Survey

    stray: set[bytes] = set()
    duplicated: set[bytes] = set()
    by_state: Counter[State] = Counter()

    def note_leased(leased: list[bytes]) -> None:
        pairs = zip(leased, read_states(queue, leased), strict=True)
        stray.update(item_id for item_id, state in pairs if state is State.STRAY_LEASE)

    survey = Survey(queue, on_leased=note_leased)
    for facts in survey.facts():
        state = facts.state
        # The others are counted in processing.
        by_state[state] += state is not State.HELD or not facts.in_processing
        if state is State.DUPLICATED:
            duplicated.add(facts.item_id)
        elif state is State.GHOST:
            stray.discard(facts.item_id)
    counted = counted._replace(
        returned=survey.returned,
        held=by_state[State.HELD],
        orphaned=by_state[State.ORPHANED],
        unlisted=by_state[State.UNLISTED],
        duplicated=len(duplicated),
        ghosts=by_state[State.GHOST],
        # Those of items that were completed meanwhile have ended.
        stray_leases=read_states(queue, list(stray)).count(State.STRAY_LEASE),
        wrong_types=len(survey.without_nested(survey.wrong)),
        returns=survey.returns,
        results=None if survey.results is None else len(survey.without_nested(survey.results)),
    )
    return counted, duplicated
