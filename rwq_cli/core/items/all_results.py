"""All results that are kept of a queue's items: reading them, putting them in, taking them away."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rwq_cli.core.batches import Flush, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.nested_queues import member_ids, nested_names
from rwq_cli.core.items.results import A_RESULT, NOTHING, Result, kinds_of, read_results
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES

# Each makes a new key.
_PUT_ITEMS = 250


@dataclass(slots=True)
class ResultTally:
    """What became of results that were put in.

    Attributes:
        put: How many are in, those that replaced another among them.
        there: In the place of how many there was one, which stays.
        refused: In the place of how many there was a key that is no result.
    """

    put: int = 0
    there: int = 0
    refused: int = 0

    def add(self, batch: OutcomeBatch) -> None:
        """Count those of one call."""
        self.put += batch.letters.count("i") + batch.letters.count("p")
        self.there += batch.letters.count("h")
        self.refused += batch.letters.count("y")


def read_all(
    queue: Queue,
) -> Iterator[list[Result]]:
    """Every result of a queue, each once and whole, in batches of a bounded number of bytes.

    Of each ID a number of 64 bits is kept until the end.
    """
    met: set[int] = set()
    names = nested_names(
        queue,
    )
    for page in member_ids(queue, (queue.keys.result_prefix,), names):
        fresh = [item_id for item_id in dict.fromkeys(page) if hash(item_id) not in met]
        met.update(map(hash, fresh))
        yield from read_results(queue, fresh)


class ResultCount:
    """Counts results among the IDs that a walk over all keys meets.

    Of each a number of 64 bits is kept, because a walk may meet a key twice.

    Args:
        queue: The queue.
    """

    def __init__(
        self,
        queue: Queue,
    ) -> None:
        self._queue = queue
        self._results: set[int] = set()
        self._others: set[int] = set()

    @property
    def results(self) -> int:
        """How many were met."""
        return len(self._results)

    @property
    def others(self) -> int:
        """How many keys were met that are named like results and are none."""
        return len(self._others)

    def meet(self, ids: Sequence[bytes]) -> None:
        """Count those of a page of IDs.

        Raises:
            PermissionDenied: This user may not read them.
            ServerError: The connection was lost.
        """
        for item_id, kind in zip(ids, kinds_of(self._queue, ids), strict=True):
            if kind == A_RESULT:
                self._results.add(hash(item_id))
            elif kind != NOTHING:
                self._others.add(hash(item_id))


def count_all(
    queue: Queue,
) -> ResultCount:
    """How many results are kept.

    Raises:
        PermissionDenied: This user may not read them.
        ServerError: The server refused, or was lost.
    """
    count = ResultCount(
        queue,
    )
    names = nested_names(
        queue,
    )
    for page in member_ids(queue, (queue.keys.result_prefix,), names):
        count.meet(page)
    return count


def put_results(
    queue: Queue,
    results: Iterable[Result | Flush],
    *,
    replaces: bool,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Put results in as they were, each with the time that was left to it.

    Where one is there it is taken to be a later one, or the same: doing this again changes nothing.

    Args:
        queue: The queue.
        results: The results; a `FLUSH` among them ends a batch.
        replaces: Whether one that is there gives way.
        dry_run: Say what would be done, and change nothing.

    Yields:
        One outcome for each, in order.
    """
    queue.progress.begin("putting in results")
    met: set[bytes] = set()
    for batch in in_batches(results, items_max=_PUT_ITEMS, bytes_max=SNAPSHOT_BYTES, size=_size):
        ids = [found.item_id for found in batch]
        queue.progress.advance(len(ids))
        if dry_run:
            yield OutcomeBatch(ids, _would_put(queue, ids, met, replaces))
            continue
        words: list[object] = [int(replaces)]
        for found in batch:
            words += (
                found.item_id,
                -1 if found.ttl_ms is None else max(1, found.ttl_ms),
                found.verdict.value,
                found.completed_ms,
                int(found.holder is not None),
                found.holder or b"",
                int(found.result is not None),
                found.result or b"",
            )
        reply = queue.run("put_results", *words)
        yield OutcomeBatch(ids, reply[0].decode("ascii"))


def _would_put(queue: Queue, ids: Sequence[bytes], met: set[bytes], replaces: bool) -> str:
    letters = []
    for item_id, kind in zip(ids, kinds_of(queue, ids), strict=True):
        if kind == NOTHING and item_id not in met:
            letters.append("i")
            met.add(item_id)
        elif kind in (NOTHING, A_RESULT):
            letters.append("p" if replaces else "h")
        else:
            letters.append("y")
    return "".join(letters)


def drop_results(queue: Queue, results: Sequence[Result]) -> None:
    """Delete results, unless another item of that ID was completed or added since."""
    for batch in in_batches(results):
        words: list[object] = []
        for found in batch:
            words += (found.item_id, found.completed_ms)
        queue.run("drop_results", *words)


def _size(found: Result) -> int:
    return found.result_bytes or 0
