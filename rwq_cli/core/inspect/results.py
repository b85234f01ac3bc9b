"""Reading the results of completed items."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import pattern_of
from rwq_cli.core.state.reads import read_parts

_FIELDS = 8
# Kinds of a result key; any other kind is the type of a key that is not a result.
KIND_NONE, KIND_RESULT = "none", "result"


class ResultStatus(StrEnum):
    """Whether an item was completed or given up."""

    COMPLETED = "completed"
    REJECTED = "rejected"


class Result(NamedTuple):
    """The result of a completed item.

    Attributes:
        item_id: The item's ID.
        status: Whether it was completed or given up.
        completed_ms: The time of completion by the server's clock, unix ms.
        holder: The holder of its lease at that time; None if there is none.
        result: The data of the result; None if it has none, or if it was not read.
        result_bytes: The size of the data; None if it has none.
        ttl_ms: Milliseconds until it expires; None for no expiry.
    """

    item_id: bytes
    status: ResultStatus
    completed_ms: int
    holder: bytes | None = None
    result: bytes | None = None
    result_bytes: int | None = None
    ttl_ms: int | None = None


class ResultKey(NamedTuple):
    item_id: bytes
    has_item: bool
    # `KIND_NONE`, `KIND_RESULT`, or the type of a key that is not a result. A hash may belong to a
    # queue whose name begins like this queue's result keys.
    kind: str
    result: Result | None


def read_result_keys(
    queue: Queue, ids: Iterable[bytes], *, data: bool = False
) -> Iterator[list[ResultKey]]:
    """Read the result keys of IDs, in batches of a bounded number of bytes, if the user may."""
    for batch, reply in read_parts(queue, "results", ids, _FIELDS, wants_data=data):
        keys = []
        for at, item_id in enumerate(batch):
            fields = reply[at * _FIELDS : (at + 1) * _FIELDS]
            has_item, kind, status, completed_ms, holder, size, result, left_ms = fields
            item_result = None
            if kind == KIND_RESULT.encode():
                ended = ResultStatus(status.decode()), int(completed_ms)
                ttl_ms = left_ms if left_ms >= 0 else None
                item_result = Result(item_id, *ended, holder, result, size, ttl_ms)
            keys.append(ResultKey(item_id, has_item == b"1", kind.decode(), item_result))
        yield keys


def all_results(queue: Queue) -> Iterator[list[Result]]:
    """Every result of a queue, whole, in batches of a bounded number of bytes. SCAN may return a
    key twice, so each ID is kept until the end."""
    done: set[bytes] = set()
    for page in queue.connection.scan_keys(pattern_of(queue.keys.result_prefix)):
        ids = (key.removeprefix(queue.keys.result_prefix) for key in dict.fromkeys(page))
        fresh = [item_id for item_id in ids if item_id not in done]
        done.update(fresh)
        for batch in read_result_keys(queue, fresh, data=True):
            if whole := [key.result for key in batch if key.result]:
                yield whole
