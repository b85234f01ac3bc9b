"""What is kept of completed items: looking at it, and waiting for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rwq_cli.core.batches import in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.result_options import Verdict
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import State
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES

_FIELDS = ("status", "completed_ms", "holder")
# What may be under the key of a result, besides the types of what is none.
NOTHING, A_RESULT = "none", "result"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome that is kept of an item.

    Attributes:
        item_id: The item's ID.
        verdict: How it came to its end.
        completed_ms: When that was by the server's clock, unix ms.
        holder: Who held its lease then; None for nobody.
        result: The result; None where none was given, or where it was not read.
        result_bytes: Its size; None where none was given.
        ttl_ms: Milliseconds until it is forgotten; None means that it has no expiry.
    """

    item_id: bytes
    verdict: Verdict
    completed_ms: int
    holder: bytes | None = None
    result: bytes | None = None
    result_bytes: int | None = None
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ResultLook:
    """What there is under an ID.

    Attributes:
        queue: The queue's name.
        item_id: The ID.
        state: The state of the item that has this ID now.
        result: What is kept of the item that was completed; None for nothing.
        waited_out: Whether the item was waited for, and was still there when the time was up.
    """

    queue: bytes
    item_id: bytes
    state: State
    result: Result | None
    waited_out: bool = False


def look_for_result(queue: Queue, item_id: bytes) -> ResultLook:
    """What is kept of one item, and what has become of the item.

    Args:
        queue: The queue.
        item_id: The ID.

    Raises:
        ServerError: The server refused, or was lost; or the key of the result holds another type.
    """
    queue.connection.look_only()
    there, *replies = queue.call_all(
        [("EXISTS", queue.keys.item(item_id)), *_whole_result(queue.keys, item_id)], atomic=True
    )
    found = _result_with_bytes(item_id, *replies)
    return ResultLook(queue.keys.name, item_id, _state(queue, item_id, there), found)


def wait_for_result(
    queue: Queue,
    item_id: bytes,
    *,
    timeout_s: float,
    clock: Clock,
) -> ResultLook:
    """Wait until no item of this ID exists, and look what is kept of it.

    While an item exists it is waited for, whatever is kept of an earlier one.

    Args:
        queue: The queue.
        item_id: The ID.
        timeout_s: How long to wait, seconds; infinity for ever.
        clock: Measures the waiting, and waits.

    Raises:
        ServerError: The server refused, or was lost; or the key of the result holds another type.
    """
    from rwq_cli.core.items.waiting import WaitCondition, wait_until

    deadline_s = clock.monotonic() + timeout_s
    with queue.connection.deadline(timeout_s):
        while True:
            left_s = max(0.0, deadline_s - clock.monotonic())
            waited = wait_until(queue, WaitCondition(ids=(item_id,)), timeout_s=left_s, clock=clock)
            look = look_for_result(queue, item_id)
            if look.state is State.GONE:
                return look
            if not waited.reached:
                return replace(look, result=None, waited_out=True)


def peek(queue: Queue, ids: Sequence[bytes]) -> list[Result | None]:
    """What is kept of each, without the results' bytes; None for nothing, or nothing of ours.

    Raises:
        PermissionDenied: This user may not read them.
        ServerError: The connection was lost.
    """
    found: list[Result | None] = []
    for batch in in_batches(ids):
        commands: list[tuple[object, ...]] = []
        for item_id in batch:
            key = queue.keys.result(item_id)
            commands += (
                ("HMGET", key, *_FIELDS),
                ("HEXISTS", key, "result"),
                ("HSTRLEN", key, "result"),
                ("PTTL", key),
            )
        replies = iter(queue.call_all(commands, atomic=True, return_errors=True))
        for item_id, fields, there, size, ttl_ms in zip(
            batch, replies, replies, replies, replies, strict=True
        ):
            found.append(_result(item_id, fields, size if there else None, ttl_ms))
    return found


def read_results(queue: Queue, ids: Sequence[bytes]) -> Iterator[list[Result]]:
    """What is kept of each, in batches of a bounded number of bytes; what is nothing is left out.

    Raises:
        ServerError: The connection was lost.
    """
    there = [found for found in peek(queue, ids) if found is not None]
    for batch in in_batches(there, bytes_max=SNAPSHOT_BYTES, size=lambda r: r.result_bytes or 0):
        commands = [
            command for found in batch for command in _whole_result(queue.keys, found.item_id)
        ]
        replies = iter(queue.call_all(commands, atomic=True, return_errors=True))
        read = [
            _result_with_bytes(found.item_id, fields, result, ttl_ms)
            for found, fields, result, ttl_ms in zip(batch, replies, replies, replies, strict=True)
        ]
        if whole := [found for found in read if found is not None]:
            yield whole


def kinds_of(queue: Queue, ids: Sequence[bytes]) -> list[str]:
    """What is under the key of each one's result.

    Raises:
        PermissionDenied: This user may not read them.
        ServerError: The connection was lost.

    Returns:
        `NOTHING`, `A_RESULT`, or the type of what is no result of ours. A hash may be one of a
        queue whose name begins like our results.
    """
    kinds: list[str] = []
    for batch in in_batches(ids):
        commands: list[tuple[object, ...]] = []
        for item_id in batch:
            key = queue.keys.result(item_id)
            commands += (("TYPE", key), ("HMGET", key, *_FIELDS))
        replies = iter(queue.call_all(commands, atomic=True, return_errors=True))
        for kind, fields in zip(replies, replies, strict=True):
            kinds.append(kind.decode() if _verdict_and_time(fields) is None else A_RESULT)
    return kinds


def check_places(queue: Queue, ids: Sequence[bytes]) -> None:
    """See that a result can be kept of each.

    Raises:
        WrongType: A key in its place holds something else.
        ServerError: The server refused, or was lost.
    """
    for item_id, kind in zip(ids, kinds_of(queue, ids), strict=True):
        if kind not in (NOTHING, A_RESULT):
            name = queue.keys.result(item_id).decode("utf-8", "backslashreplace")
            wanted = "one of results" if kind == "hash" else "a hash"
            raise WrongType(
                f"{name} holds another type than the protocol says: a {kind} and not {wanted}",
                "see what it is with the TYPE command, or name another queue",
            )


def _state(queue: Queue, item_id: bytes, there: int) -> State:
    from rwq_cli.core.inspect.report import facts_of
    from rwq_cli.core.state.rules import state_of

    if not there:
        return State.GONE
    (item_report,) = facts_of(queue, [item_id])
    state = state_of(item_report.facts)
    # Gone since; what is left of it, if anything, is no item.
    return state if item_report.facts.has_data else State.GONE


def _whole_result(keys: QueueKeys, item_id: bytes) -> tuple[tuple[object, ...], ...]:
    """The commands that read a result with its bytes."""
    key = keys.result(item_id)
    return ("HMGET", key, *_FIELDS), ("HGET", key, "result"), ("PTTL", key)


def _result_with_bytes(item_id: bytes, fields: Any, result: Any, ttl_ms: Any) -> Result | None:
    size = len(result) if isinstance(result, bytes) else None
    found = _result(item_id, fields, size, ttl_ms)
    return found if found is None or size is None else replace(found, result=result)


def _verdict_and_time(fields: Any) -> tuple[Verdict, int] | None:
    """What the fields of a hash say; None where they are none of ours."""
    if not isinstance(fields, list):
        return None
    try:
        return Verdict((fields[0] or b"").decode("ascii")), int(fields[1] or b"")
    except ValueError:
        return None


def _result(item_id: bytes, fields: Any, size: Any, ttl_ms: Any) -> Result | None:
    """A result from the fields of its hash; None where they are none of ours."""
    known = _verdict_and_time(fields)
    if known is None:
        return None
    verdict, at_ms = known
    return Result(
        item_id=item_id,
        verdict=verdict,
        completed_ms=at_ms,
        holder=fields[2],
        result_bytes=size,
        ttl_ms=ttl_ms if ttl_ms >= 0 else None,
    )
