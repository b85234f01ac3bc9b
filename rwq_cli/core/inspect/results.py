"""Reading what is kept of completed items."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.nested_queues import member_ids, nested_names
from rwq_cli.core.server.connection import Command
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES

_FIELDS = 8
# What may be under the key of a result, besides the types of what is none.
NOTHING, A_RESULT = "none", "result"


class Verdict(StrEnum):
    """How an item ended."""

    COMPLETED = "completed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome that is kept of an item.

    Attributes:
        item_id: The item's ID.
        verdict: How it ended.
        completed_ms: When that was by the server's clock, unix ms.
        holder: Who held its lease then; None for nobody.
        result: The result; None if none was given, or if it was not read.
        result_bytes: Its size; None if none was given.
        ttl_ms: Milliseconds until it expires; None for no expiry.
    """

    item_id: bytes
    verdict: Verdict
    completed_ms: int
    holder: bytes | None = None
    result: bytes | None = None
    result_bytes: int | None = None
    ttl_ms: int | None = None


class ResultKey(NamedTuple):
    """What the result key of an ID holds.

    Attributes:
        item_id: The ID.
        has_item: Whether an item exists with this ID.
        kind: `NOTHING`, `A_RESULT`, or the type of what is no result of ours. A hash may belong to
            a queue whose name begins like our result keys.
        result: The result; None for none.
    """

    item_id: bytes
    has_item: bool
    kind: str
    result: Result | None


def read_result_keys(
    queue: Queue, ids: Iterable[bytes], *, data: bool = False
) -> Iterator[list[ResultKey]]:
    """What is kept of each ID, in batches of a bounded number of bytes.

    Args:
        queue: The queue.
        ids: The IDs.
        data: Read the results themselves, too.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    for batch in in_batches(ids):
        while batch:
            found = result_keys_from(batch, queue.run("results", int(data), SNAPSHOT_BYTES, *batch))
            yield found
            batch = batch[len(found) :]


def results_command(queue: Queue, ids: Iterable[bytes]) -> Command:
    """The command that reads what is kept of some IDs, without the results themselves."""
    return queue.script("results", 0, SNAPSHOT_BYTES, *ids)


def result_keys_from(ids: Sequence[bytes], reply: Sequence[Any]) -> list[ResultKey]:
    """What a reply of the script says; results may end it before the last ID."""
    fields = [reply[at : at + _FIELDS] for at in range(0, len(reply), _FIELDS)]
    return [_result_key(*each) for each in zip(ids, fields, strict=False)]


def _result_key(item_id: bytes, fields: Sequence[bytes]) -> ResultKey:
    has_item, kind, status, completed_ms, holder, size, result, left_ms = fields
    found = None
    if kind == A_RESULT.encode():
        found = Result(
            item_id=item_id,
            verdict=Verdict(status.decode()),
            completed_ms=int(completed_ms),
            holder=holder,
            result=result,
            result_bytes=None if size is None else int(size),
            ttl_ms=int(left_ms) if int(left_ms) >= 0 else None,
        )
    return ResultKey(item_id, has_item == b"1", kind.decode(), found)


def results(queue: Queue, ids: Iterable[bytes]) -> list[Result | None]:
    """What is kept of each ID, without the results themselves; None for nothing of ours.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    return [found.result for batch in read_result_keys(queue, ids) for found in batch]


def result_kinds(queue: Queue, ids: Iterable[bytes]) -> list[str]:
    """The `kind` of each ID's result key: see `ResultKey`.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    return [found.kind for batch in read_result_keys(queue, ids) for found in batch]


def all_results(queue: Queue) -> Iterator[list[Result]]:
    """Every result of a queue, each once and whole, in batches of a bounded number of bytes.

    SCAN may return a key twice, so each ID is kept until the end.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    done: set[bytes] = set()
    for page in member_ids(queue, (queue.keys.result_prefix,), nested_names(queue)):
        fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in done]
        done.update(fresh)
        for batch in read_result_keys(queue, fresh, data=True):
            if whole := [found.result for found in batch if found.result]:
                yield whole


class ResultCount:
    """Counts the results among IDs that a walk over all keys returns, some of them twice.

    Args:
        queue: The queue.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._results: set[bytes] = set()
        self._others: set[bytes] = set()

    @property
    def results(self) -> int:
        """How many results there are."""
        return len(self._results)

    @property
    def others(self) -> int:
        """How many keys are named like results and are none."""
        return len(self._others)

    def add(self, ids: Sequence[bytes]) -> None:
        """Count the result keys of some IDs.

        Raises:
            PermissionDenied: This user may not read result keys.
        """
        for item_id, kind in zip(ids, result_kinds(self._queue, ids), strict=True):
            if kind == A_RESULT:
                self._results.add(item_id)
            elif kind != NOTHING:
                self._others.add(item_id)
