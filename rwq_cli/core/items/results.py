"""Results of completed items, and restoring them; waiting until items are gone, or a queue is empty
or short."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from rwq_cli.core.errors import PermissionDenied, ReadOnly, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.counting import lengths
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.results import KIND_NONE, KIND_RESULT, Result, read_result_keys
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Counts, OutcomeBatch, State
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.reads import existing


class ResultLookup(NamedTuple):
    """The result of an ID, and the state of the item with this ID.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: The state of the item that has this ID now.
        result: The result of the completed item; None if there is none.
        timed_out: Whether the wait for the item's completion timed out.
    """

    queue: bytes
    item_id: bytes
    state: State
    result: Result | None
    timed_out: bool = False


def result(
    queue: Queue,
    item_id: bytes | str,
    *,
    wait: bool = False,
    timeout_s: float = float("inf"),
    promotes: bool = True,
) -> ResultLookup:
    """Read the result of an ID, and the state of its item; see `WorkQueue.result`."""
    wanted = to_bytes(item_id)
    if not wait:
        queue.connection.set_no_touch()
        return _look_up(queue, wanted)
    deadline_s = queue.clock.monotonic() + timeout_s
    queue = queue.within(timeout_s)
    queue.connection.set_no_touch()
    while True:
        remaining_s = max(0.0, deadline_s - queue.clock.monotonic())
        (waited,) = wait_for_all(
            [queue],
            ids=[wanted],
            timeout_s=remaining_s,
            meanwhile=promote if promotes else None,
        )
        lookup = _look_up(queue, wanted)
        if lookup.state is State.GONE:
            return lookup
        if not waited.reached:
            return lookup._replace(result=None, timed_out=True)


def _look_up(queue: Queue, item_id: bytes) -> ResultLookup:
    ((result_key,),) = read_result_keys(queue, [item_id], data=True)
    if result_key.kind not in (KIND_NONE, KIND_RESULT, "hash"):
        raise WrongType.of(queue.keys.result(item_id))
    # A leftover entry or lease is not an item.
    items = [facts for facts in facts_of(queue, [item_id] * result_key.has_item) if facts.has_data]
    state = items[0].state if items else State.GONE
    return ResultLookup(queue.name, item_id, state, result_key.result)


def restore_results(
    queue: Queue,
    lines: Sequence[Line],
    marks: bytes,
    journal: Journal | None,
    replaces: bool,
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Restore results, each ID at most once; see `restore`.

    Args:
        marks: The key of the lines that were restored; b"" for none.
        replaces: Replace those that exist; with a journal, only what was written to it.
    """
    queue.progress.begin("restoring results")
    results = [(line, line.entry) for line in lines if isinstance(line.entry, Result)]
    # By ID, the completion time of the one result that may be replaced; "" for any.
    replaceable = {result.item_id: line.replaced_by or "" for line, result in results}
    if replaces and journal is not None:
        new_times = {result.item_id: str(result.completed_ms) for _, result in results}
        replaceable = dict.fromkeys(new_times, "-")
        for keys in read_result_keys(queue, list(new_times), data=True):
            if old := [key.result for key in keys if key.result is not None]:
                journal.write(old, [new_times[result.item_id] for result in old])
            replaceable.update((result.item_id, str(result.completed_ms)) for result in old)

    def calls() -> Iterator[tuple[list[bytes], Command]]:
        limit = queue.budget("restore_results")
        for batch in limit.split(results, lambda pair: len(pair[1].result or b"")):
            words = _result_words(batch, replaceable)
            yield (
                [result.item_id for _, result in batch],
                queue.script(
                    "restore_results", *words, marks=marks, replaces=replaces, dry_run=dry_run
                ),
            )

    for outcomes in queue.act_each(calls()):
        yield outcomes
        queue.progress.advance(len(outcomes))


def _result_words(
    results: Sequence[tuple[Line, Result]], replaceable: Mapping[bytes, str]
) -> list[object]:
    words: list[object] = []
    for line, result in results:
        left_ms = -1 if result.ttl_ms is None else max(1, result.ttl_ms)
        words += line.number, result.item_id, left_ms, result.status.value, result.completed_ms
        for text in (result.holder, result.result):
            words += int(text is not None), text or b""
        words.append(replaceable[result.item_id])
    return words


# The pause between two polls grows from the first value to the second.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_GROWTH = 1.5


class WaitResult(NamedTuple):
    """How a wait ended, and the lengths of the queue's structures then."""

    # In time.
    reached: bool
    counts: Counts
    # How many of the IDs still existed; None for another condition.
    remaining: int | None
    waited_s: float
    # By the first poll already.
    met_at_first: bool


def wait_for_all(
    queues: Sequence[Queue],
    *,
    below: int | None = None,
    ids: Sequence[bytes] = (),
    timeout_s: float = float("inf"),
    meanwhile: Callable[[Queue], Iterable[object]] | None = promote,
) -> Iterator[WaitResult]:
    """Poll until several queues, on one connection, all meet a condition at once; yields for each,
    in order, how its wait ended.

    The condition is that fewer items than `below` wait, or that none of the IDs exists any more;
    else that the queue is empty: no item waits, is in processing or is delayed. Buried items stay
    until somebody kicks them, so they do not count.

    After each poll, what happens `meanwhile` to a queue that has leased or delayed items is done,
    unless it is None, or the user has no write permission. Due items are promoted, so that the wait
    needs no cleaner for them.

    While an upstream cleaner returns an item, the item is in no list between the cleaner's two
    commands. So a queue counts as empty only after two empty polls in a row, a moment apart.
    """
    if not queues:
        return
    polls_twice = not ids and below is None
    clock, pause_s = queues[0].clock, _FIRST_PAUSE_S
    started_s = clock.monotonic()
    pending: list[Sequence[bytes]] = [ids] * len(queues)
    met_at_first: list[bool] = []
    was_met = False
    queues = [queue.within(timeout_s) for queue in queues]
    while True:
        if ids:
            pending = list(map(existing, queues, pending))
            counts, met = [], [not pending_ids for pending_ids in pending]
        else:
            counts = list(map(lengths, queues))
            met = [
                not (count.waiting or count.processing or count.delayed)
                if below is None
                else count.waiting < below
                for count in counts
            ]
        met_at_first = met_at_first or met
        is_met = all(met)
        is_over = is_met and (was_met or not polls_twice)
        waited_s = clock.monotonic() - started_s
        if is_over or (waited_s >= timeout_s and not is_met):
            break
        if was_met := is_met:
            clock.sleep(_FIRST_PAUSE_S)
            continue
        busy = [
            queue
            for queue, count in zip_longest(queues, counts)
            if not count or count.delayed or count.processing
        ]
        try:
            if meanwhile is not None:
                deque(chain.from_iterable(map(meanwhile, busy)), maxlen=0)
        except (PermissionDenied, ReadOnly):
            meanwhile = None
        clock.sleep(min(pause_s, timeout_s - waited_s))
        pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
    counts = counts or list(map(lengths, queues))
    remaining = [len(pending_ids) if ids else None for pending_ids in pending]
    for reached, count, number, first in zip(met, counts, remaining, met_at_first, strict=True):
        yield WaitResult(reached, count, number, waited_s, first)
