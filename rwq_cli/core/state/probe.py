"""Reading the facts about many IDs whose places in the lists are known."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import DIGEST_DIGITS
from rwq_cli.core.model import DIGITS_MAX, STATE_CODES, Lease, State
from rwq_cli.core.state.rules import Facts

# How many fields `facts_reply` of `lua/lib/facts.lua` returns for each ID.
FACT_FIELDS = 8
_STATE_OF_CODE = {code: state for state, code in STATE_CODES.items()}
_ABANDONED, _GHOST = STATE_CODES[State.ABANDONED], STATE_CODES[State.GHOST]


def probe(
    queue: Queue,
    ids: Iterable[bytes],
    *,
    in_main: int = 0,
    in_processing: int = 0,
    digests: bool = False,
) -> Iterator[Facts]:
    """Read the facts about IDs, in order, in batches; each batch is read at one instant.

    Args:
        queue: The queue.
        ids: The IDs.
        in_main: How often each is in main, as the caller knows.
        in_processing: How often each is in processing, as the caller knows.
        digests: Whether to read `Facts.digest`.
    """
    length = FACT_FIELDS + digests
    for batch, reply in queue.read_each("probe", in_batches(ids), int(digests)):
        now_ms = int(reply[0])
        for at, item_id in enumerate(batch):
            fields = reply[1 + at * length : 1 + (at + 1) * length]
            digest = fields.pop() if digests else b""
            yield parse_facts(
                queue.keys,
                item_id,
                fields,
                now_ms,
                in_main,
                in_processing,
                digest=digest,
            )


def parse_facts(
    keys: QueueKeys,
    item_id: bytes,
    fields: Sequence[Any],
    now_ms: int,
    in_main: int,
    in_processing: int,
    in_cleaning: int = 0,
    digest: bytes = b"",
) -> Facts:
    """The facts from a reply of `facts_reply` in `lua/lib/facts.lua`.

    Args:
        keys: The queue's keys.
        item_id: The ID.
        fields: The fields of this ID.
        now_ms: The server's clock, unix ms.
        in_main: How often the ID is in main.
        in_processing: How often it is in processing.
        in_cleaning: How often it is in the list of a 0.1 cleaner.
        digest: See `Facts`.
    """
    kind, new, new_ms, old, old_ms, due, buried, returned = fields
    returns = parse_returns(returned)
    return Facts(
        item_id,
        kind != b"none",
        in_main,
        in_processing,
        in_cleaning,
        parse_lease(new, new_ms),
        parse_lease(old, old_ms),
        float(due) if due else None,
        float(buried) if buried else None,
        now_ms,
        returns,
        parse_wrong_types(keys, item_id, kind, new_ms, old_ms),
        returned is not None and returns is None,
        digest,
    )


def states(
    queue: Queue, ids: Sequence[bytes], *, in_main: int = 0, in_processing: int = 0
) -> list[State]:
    """Read the states of IDs, in order; like `probe`, but the server computes the states."""
    found: list[State] = []
    for _, reply in queue.read_each("states", in_batches(ids), in_main, in_processing, 0):
        found += _states_from(reply)
    return found


def states_in_processing(
    wanted: Sequence[tuple[Queue, Sequence[bytes]]],
) -> list[list[State] | ServerError]:
    """Read the states of IDs of several queues on one connection in one round trip.

    Args:
        wanted: The queues, each with IDs that are once in processing, and not in main.

    Returns:
        The states, or the refusal, of each.
    """
    calls = [(at, batch) for at, (_, ids) in enumerate(wanted) for batch in in_batches(ids)]
    if not calls:
        return [[] for _ in wanted]
    commands = [wanted[at][0].script("states", 0, 1, 0, *batch) for at, batch in calls]
    found: list[list[State] | ServerError] = [[] for _ in wanted]
    replies = wanted[0][0].connection.root.call_all(commands, return_errors=True)
    for (at, _), reply in zip(calls, replies, strict=True):
        known = found[at]
        if isinstance(reply, ServerError):
            found[at] = reply
        elif not isinstance(known, ServerError):
            known += _states_from(reply)
    return found


def _states_from(reply: Sequence[bytes]) -> list[State]:
    """The states from a reply of the script `states`."""
    return list(map(_STATE_OF_CODE.__getitem__, reply[0].decode("ascii")))


def find_broken(
    queue: Queue, pages: Iterable[Sequence[bytes]]
) -> Iterator[tuple[bytes, State, bytes]]:
    """Find the abandoned items and the ghosts in processing, sending calls ahead of the replies.

    Args:
        queue: The queue.
        pages: Pages of processing.

    Yields:
        The ID and state of each, and the digest of an abandoned item, else b"".
    """
    batches = (batch for page in pages for batch in in_batches(page))
    for batch, (codes, digests) in queue.read_each("states", batches, 0, 1, 1):
        at = 0
        for item_id, code in zip(batch, codes.decode("ascii"), strict=True):
            if code == _ABANDONED:
                yield item_id, State.ABANDONED, digests[at : at + DIGEST_DIGITS]
                at += DIGEST_DIGITS
            elif code == _GHOST:
                yield item_id, State.GHOST, b""


def parse_lease(value: bytes, left_ms: int) -> Lease | None:
    """A lease from a script's reply.

    Args:
        value: The value of its key.
        left_ms: The time left, ms: -1 for no expiry, -2 for no lease, -3 for a key of the wrong
            type.
    """
    return None if left_ms == -2 else Lease(value, left_ms if left_ms >= 0 else None)


def parse_returns(value: bytes | None) -> int | None:
    """A count of returns; None if there is none, or if it is not a valid number."""
    return int(value) if value and value.isdigit() and len(value) <= DIGITS_MAX else None


def parse_wrong_types(
    keys: QueueKeys, item_id: bytes, kind: bytes, new_ms: int, old_ms: int
) -> dict[bytes, str]:
    """The keys of an ID that have the wrong type, with their types.

    Args:
        keys: The queue's keys.
        item_id: The ID.
        kind: The type of its data key.
        new_ms: The time left of its new lease key, as for `parse_lease`.
        old_ms: The time left of its old lease key.
    """
    wrong: dict[bytes, str] = {}
    if kind not in (b"none", b"string"):
        wrong[keys.item(item_id)] = kind.decode()
    if -3 not in (new_ms, old_ms):
        return wrong
    for key, left_ms in ((keys.lease(item_id), new_ms), (keys.old_lease(item_id), old_ms)):
        if left_ms == -3:
            wrong[key] = "not a string"
    return wrong
