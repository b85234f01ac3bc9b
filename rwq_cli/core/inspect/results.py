"""Reading the results of completed items."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.keyspace import ids_of, may_be_in_nested_queue
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.scan import scan_keys
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES

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
    """The result key of an ID.

    Attributes:
        item_id: The ID.
        has_item: Whether an item with this ID exists.
        kind: `KIND_NONE`, `KIND_RESULT`, or the type of a key that is not a result. A hash may
            belong to a queue whose name begins like this queue's result keys.
        result: The result; None if there is none.
    """

    item_id: bytes
    has_item: bool
    kind: str
    result: Result | None


def read_result_keys(
    queue: Queue, ids: Iterable[bytes], *, data: bool = False
) -> Iterator[list[ResultKey]]:
    """Read the result keys of IDs, in batches of a bounded number of bytes.

    Args:
        queue: The queue.
        ids: The IDs.
        data: Read the data of the results, too.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    for batch in in_batches(ids):
        while batch:
            found = result_keys_from(
                batch, queue.run("results", *batch, wants_data=data, bytes_max=SNAPSHOT_BYTES)
            )
            yield found
            batch = batch[len(found) :]


def results_command(queue: Queue, ids: Iterable[bytes]) -> Command:
    """The command that reads the result keys of IDs, without the data of the results."""
    return queue.script("results", *ids, wants_data=False, bytes_max=SNAPSHOT_BYTES)


def result_keys_from(ids: Sequence[bytes], reply: Sequence[Any]) -> list[ResultKey]:
    """Parse a reply of the script, which may end before the last ID."""
    fields = [reply[at : at + _FIELDS] for at in range(0, len(reply), _FIELDS)]
    return [_result_key(*each) for each in zip(ids, fields, strict=False)]


def _result_key(item_id: bytes, fields: Sequence[bytes]) -> ResultKey:
    has_item, kind, status, completed_ms, holder, size, result, left_ms = fields
    found = None
    if kind == KIND_RESULT.encode():
        found = Result(
            item_id=item_id,
            status=ResultStatus(status.decode()),
            completed_ms=int(completed_ms),
            holder=holder,
            result=result,
            result_bytes=None if size is None else int(size),
            ttl_ms=int(left_ms) if int(left_ms) >= 0 else None,
        )
    return ResultKey(item_id, has_item == b"1", kind.decode(), found)


def results(queue: Queue, ids: Iterable[bytes]) -> list[Result | None]:
    """The result of each ID, without its data; None if there is none.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    return [found.result for batch in read_result_keys(queue, ids) for found in batch]


def invalid_results(queue: Queue, ids: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """The result keys that are not results, with their types; none if this user may not read."""
    own = [item_id for item_id in ids if not may_be_in_nested_queue(item_id)]
    with suppress(PermissionDenied):
        for batch in read_result_keys(queue, own):
            for found in batch:
                if found.kind not in (KIND_NONE, KIND_RESULT):
                    yield queue.keys.result(found.item_id), found.kind


def all_results(queue: Queue) -> Iterator[list[Result]]:
    """Every result of a queue, each once and whole, in batches of a bounded number of bytes.

    SCAN may return a key twice, so each ID is kept until the end.

    Raises:
        PermissionDenied: This user may not read result keys.
    """
    done: set[bytes] = set()
    for page in scan_keys(queue.connection, queue.keys.result_pattern):
        ids = dict.fromkeys(ids_of(page, queue.keys.result_prefix))
        fresh = [item_id for item_id in ids if item_id not in done]
        done.update(fresh)
        for batch in read_result_keys(queue, fresh, data=True):
            if whole := [found.result for found in batch if found.result]:
                yield whole
