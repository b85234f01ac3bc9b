"""Running a verb's script on many IDs, by the way that costs the server least."""

from collections.abc import Iterable, Iterator, Sequence, Set
from os import urandom
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, Flush, in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing
from rwq_cli.core.items.processing import (
    FEW_IDS,
    act_by_pages,
    act_one_by_one,
    repeated_in_processing,
)
from rwq_cli.core.model import OutcomeBatch

# IDs are taken from their stream in blocks of this many, so that memory stays bounded while one
# turn of the processing list serves a whole block.
_BLOCK_IDS = 200_000
# IDs that passed by unseen while others worked on the list are sought so often by pages.
_TURNS = 3
# Of main so many entries are read at once, and so many IDs are dealt with by a call, which passes
# over half of the list at most.
_STRETCH = 4000
_FEW_WAITING = FEW_IDS
_WAITING_IDS = 250
# Where a call may deal with fewer IDs, turning the list round by such pages costs more than looking
# for each of them.
_PAGE_MIN = 50
# Others may have popped or pushed so many entries since a stretch was read.
_SLACK = 500
# So often it is asked whether many IDs are really in processing more than once.
_WALKS = 10
_DOING = {"complete": "completing", "release": "releasing", "park": "putting away"}


class LeasePolicy(NamedTuple):
    """Whose leases may be ended where an item is taken from where it is.

    Attributes:
        own_holder: Those of this holder.
        force: Those of all others, too.
    """

    own_holder: bytes
    force: bool

    def may_end(self, session: bytes | None) -> bool:
        """Whether nobody has a lease, or one that may be ended."""
        return self.force or session in (None, self.own_holder)

    def args(self) -> tuple[object, ...]:
        """How the scripts are told."""
        return self.own_holder, "1" if self.force else "0"


def outcome_batch(ids: Sequence[bytes], reply: Sequence[Any]) -> OutcomeBatch:
    """A script's reply of letters and holders, without the IDs that it did not deal with."""
    letters = reply[0].decode("ascii")
    if "-" in letters:
        kept = [
            (item_id, letter) for item_id, letter in zip(ids, letters, strict=True) if letter != "-"
        ]
        ids, letters = [item_id for item_id, _ in kept], "".join(letter for _, letter in kept)
    return OutcomeBatch(ids, letters, reply[1:])


def act_on_ids(
    queue: Queue,
    script: str,
    args: Sequence[object],
    ids: Iterable[bytes | Flush],
    *,
    last_first: bool = False,
    waiting_script: str | None = None,
    parked_first: bool = False,
    items_max: int = BATCH_ITEMS,
) -> Iterator[OutcomeBatch]:
    """Run `complete`, `release` or `park` on a stream of IDs.

    A few IDs are looked for one by one. Of many, those that are in processing and not in main are
    dealt with page by page, so are those that are in main alone where there is a script for them,
    and the rest one by one. Of many, what is delayed or buried behind a full guard is taken to be
    in no list: where the script asks for that, such items come first, and no list is read for them.

    Args:
        queue: The queue.
        script: The script; its first argument is the page's size, or 0.
        args: Its further arguments before the IDs.
        ids: The IDs.
        last_first: Each batch goes on top of the one before, so the last has to go first; this
            takes the IDs all at once, and one by one.
        waiting_script: The script for stretches of main; None for none.
        parked_first: Whether the script deals with what is delayed or buried on its own, where its
            first argument is -2.
        items_max: How many IDs a call may have at most.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        One outcome for each distinct ID; in the order given where they are looked for one by one.
    """
    acknowledged = 0
    try:
        for block in _blocks(ids, all_at_once=last_first):
            left = dict.fromkeys(block)
            if parked_first and len(left) > FEW_IDS and not last_first:
                for batch in _behind_guards(queue, script, args, left, items_max):
                    acknowledged += len(batch)
                    yield batch
            # Of few not even what a guard says is believed.
            listed: set[bytes] = set(left) if len(left) <= FEW_IDS else set()
            if len(left) > FEW_IDS and not last_first:
                entries = lengths_of(queue, queue.keys.main, queue.keys.processing)
                queue.progress.begin("reading the lists", entries)
                listed = _listed_elsewhere(queue, left)
                queue.progress.begin(_DOING[script], len(block))
                for batch in _in_pages(queue, script, args, left, listed, items_max):
                    acknowledged += len(batch)
                    queue.progress.advance(len(batch))
                    yield batch
                if waiting_script:
                    for batch in _waiting(
                        queue,
                        waiting_script,
                        _DOING[script],
                        args,
                        left,
                        listed,
                        items_max,
                    ):
                        acknowledged += len(batch)
                        queue.progress.advance(len(batch))
                        yield batch
            for page_size, ids_left in (
                (0, [item_id for item_id in left if item_id in listed]),
                (-1, [item_id for item_id in left if item_id not in listed]),
            ):
                for batch in _one_by_one(
                    queue,
                    script,
                    (page_size, *args),
                    ids_left,
                    last_first=last_first,
                    items_max=items_max,
                ):
                    acknowledged += len(batch)
                    queue.progress.advance(len(batch))
                    yield batch
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def _blocks(ids: Iterable[bytes | Flush], *, all_at_once: bool) -> Iterator[list[bytes]]:
    if all_at_once:
        return iter([[item_id for item_id in ids if not isinstance(item_id, Flush)]])
    return in_batches(ids, items_max=_BLOCK_IDS)


def _behind_guards(
    queue: Queue,
    script: str,
    args: Sequence[object],
    left: dict[bytes, None],
    items_max: int,
) -> Iterator[OutcomeBatch]:
    """Deal with what is delayed or buried behind a full guard; that leaves `left`."""
    entries = queue.call_all([("ZCARD", key) for key in (queue.keys.delayed, queue.keys.buried)])
    if not sum(entries):
        return
    queue.progress.begin(_DOING[script], len(left))
    for ids in in_batches(list(left), items_max=items_max):
        scores = queue.call_all(
            [("ZMSCORE", key, *ids) for key in (queue.keys.delayed, queue.keys.buried)]
        )
        scheduled = [
            item_id
            for item_id, due_ms, buried_ms in zip(ids, *scores, strict=True)
            if due_ms is not None or buried_ms is not None
        ]
        if not scheduled:
            continue
        words = (-2, *args, *scheduled)
        batch = outcome_batch(scheduled, queue.run(script, *words))
        for item_id in batch.ids:
            del left[item_id]
        queue.progress.advance(len(batch))
        if len(batch):
            yield batch


def _listed_elsewhere(queue: Queue, ids: dict[bytes, None]) -> set[bytes]:
    """Which IDs have to be looked for by name: those in main, and those twice in processing."""
    listed: set[bytes] = set()
    for page in walk_list(queue, queue.keys.main, newest_first=True):
        listed.update(ids.keys() & page)
    repeated = set(repeated_in_processing(queue, ids.keys()))
    for _ in range(_WALKS):
        if len(repeated) <= FEW_IDS:
            break
        # While others turn the list round, entries that stand there once are met twice.
        repeated &= set(repeated_in_processing(queue, repeated))
    return listed | repeated


def _in_pages(
    queue: Queue,
    script: str,
    args: Sequence[object],
    left: dict[bytes, None],
    listed: set[bytes],
    items_max: int,
) -> Iterator[OutcomeBatch]:
    """Deal with what is in processing alone; what is dealt with leaves `left`."""
    if items_max < _PAGE_MIN:
        return
    sought = left.keys() - listed

    def dealt_with(ids: Sequence[bytes], reply: Sequence[Any]) -> Sequence[bytes]:
        return outcome_batch(ids, reply).ids

    for _ in range(_TURNS):
        before = len(left)
        for ids, reply in act_by_pages(
            queue,
            script,
            args,
            sought & left.keys(),
            dealt_with,
            page_items=items_max,
        ):
            # A second entry of an ID that was dealt with already says nothing new.
            batch = outcome_batch(ids, reply).only(left.keys())
            for item_id in batch.ids:
                del left[item_id]
            if len(batch):
                yield batch
        if before == len(left) or len(left.keys() & sought) <= FEW_IDS:
            return


def _waiting(
    queue: Queue,
    script: str,
    doing: str,
    args: Sequence[object],
    left: dict[bytes, None],
    listed: set[bytes],
    items_max: int,
) -> Iterator[OutcomeBatch]:
    """Deal with what is in main, once, and in no other list; what is dealt with leaves `left`."""
    mark = b"rwq-mark:" + urandom(16).hex().encode()
    for _ in range(_TURNS):
        if len(left.keys() & listed) <= _FEW_WAITING:
            return
        entries = lengths_of(queue, queue.keys.main, queue.keys.processing)
        queue.progress.begin("reading the lists", entries)
        sought = _in_main_alone(queue, left.keys() & listed)
        queue.progress.begin(doing, len(left))
        before = len(left)
        passed = 0
        while sought:
            start = max(0, passed - _SLACK)
            stretch = queue.call("LRANGE", queue.keys.main, -(passed + _STRETCH), -(start + 1))
            stretch.reverse()
            if len(stretch) <= passed - start:
                break
            met = {item_id: start + at for at, item_id in enumerate(stretch) if item_id in sought}
            gone = 0
            for ids in in_batches(met, items_max=min(_WAITING_IDS, items_max // 2)):
                places = [met[item_id] for item_id in ids]
                begin, last = max(0, min(places) - gone - _SLACK), max(places)
                words = (begin, last + _SLACK - begin, mark, *args, *ids)
                reply = queue.run(script, *words)
                outcomes = outcome_batch(ids, reply)
                gone += sum(letter != "o" for letter in outcomes.letters)
                for item_id in outcomes.ids:
                    del left[item_id]
                    sought.discard(item_id)
                if len(outcomes):
                    yield outcomes
            passed = start + len(stretch) - gone
        if before == len(left):
            return


def _in_main_alone(queue: Queue, ids: Set[bytes]) -> set[bytes]:
    """Which of the IDs are in main, once, and not in processing."""
    once: set[bytes] = set()
    several: set[bytes] = set()
    for page in walk_list(queue, queue.keys.main, newest_first=True):
        for item_id in page:
            if item_id in ids:
                (several if item_id in once else once).add(item_id)
    for page in walk_processing(
        queue,
    ):
        several.update(once.intersection(page))
    return once - several


def _one_by_one(
    queue: Queue,
    script: str,
    args: Sequence[object],
    ids: list[bytes],
    *,
    last_first: bool,
    items_max: int,
) -> Iterator[OutcomeBatch]:
    if not ids:
        return
    length = sum(
        queue.call_all([("LLEN", key) for key in (queue.keys.main, queue.keys.processing)])
    )
    for called, reply in act_one_by_one(
        queue, script, args, ids, length, last_first=last_first, items_max=items_max
    ):
        yield outcome_batch(called, reply)
