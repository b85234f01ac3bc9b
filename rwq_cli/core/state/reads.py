"""Reading the facts and states of IDs whose places in the lists are known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rwq_cli.core.batches import BUDGET, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import DIGITS_MAX, Lease, State
from rwq_cli.core.state.rules import Facts

# How many fields `lua/ops/look_up.lua` returns for each ID, without its places.
FACT_FIELDS = 9
_STATE_OF_CODE = {state.code: state for state in State}


def read_facts(
    queue: Queue,
    ids: Iterable[bytes],
    *,
    in_main: int = 0,
    in_processing: int = 0,
    digests: bool = False,
    counts: Callable[[bytes], tuple[int, int, int]] | None = None,
) -> Iterator[Facts]:
    """Read the facts about IDs, in order, in batches, each at one instant; the caller knows how
    often each is in main and in processing, or with `counts`, in all three lists."""
    everywhere = in_main, in_processing, 0
    for batch, reply in queue.read_each("look_up", ids, scan_max=None, digests_too=digests):
        now_ms = int(reply[0])
        for item_id, at in zip(batch, range(1, len(reply), FACT_FIELDS), strict=True):
            fields = reply[at : at + FACT_FIELDS]
            in_lists = counts(item_id) if counts else everywhere
            yield parse_facts(queue.keys, item_id, fields, now_ms, *in_lists)


def parse_facts(
    keys: QueueKeys,
    item_id: bytes,
    fields: Sequence[Any],
    now_ms: int,
    in_main: int,
    in_processing: int,
    in_cleaning: int = 0,
) -> Facts:
    """The facts from the fields of this ID in a reply of `lua/ops/look_up.lua`."""
    kind, new, new_ms, old, old_ms, due, buried, returned, *digest = fields
    returns = parse_returns(returned)
    wrong: dict[bytes, str] = {}
    if kind not in (b"none", b"string"):
        wrong[keys.item(item_id)] = kind.decode()
    if -3 in (new_ms, old_ms):
        leases = ((keys.lease(item_id), new_ms), (keys.old_lease(item_id), old_ms))
        wrong.update((key, "not a string") for key, left_ms in leases if left_ms == -3)
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
        wrong,
        returned is not None and returns is None,
        *digest,
    )


def read_states(
    queue: Queue,
    ids: Sequence[bytes],
    *,
    in_main: int = 0,
    in_processing: int = 0,
    unsure: list[bytes] | None = None,
) -> list[State]:
    """Read the states of IDs, in order, which the server computes. `unsure` gets those of the IDs
    that have an unsure schedule: see `Facts`."""
    args = {"in_main": in_main, "in_processing": in_processing, "digests_too": False}
    states = list[State]()
    for _, reply in queue.read_each("states", ids, **args):
        states += states_from(reply)
        if unsure is not None:
            unsure += reply[2:]
    return states


def states_from(reply: Sequence[bytes]) -> list[State]:
    return list(map(_STATE_OF_CODE.__getitem__, reply[0].decode("ascii")))


def parse_lease(value: bytes, left_ms: int) -> Lease | None:
    """A lease from what `lease_reply` of `lua/lib/facts.lua` gives."""
    return None if left_ms == -2 else Lease(value, left_ms if left_ms >= 0 else None)


def parse_returns(value: bytes | None) -> int | None:
    """A count of returns; None if there is none, or if it is not a valid number."""
    return int(value) if value and value.isdigit() and len(value) <= DIGITS_MAX else None


def existing(queue: Queue, ids: Iterable[bytes]) -> list[bytes]:
    """Those of the IDs that have data, in order: often none or all, which one command tells."""
    parts = list(in_batches(list(ids)))
    with_data: list[bytes] = []
    counts = queue.call_all([("EXISTS", *map(queue.keys.item, part)) for part in parts])
    for part, count in zip(parts, counts, strict=True):
        if 0 < count < len(part):
            exist = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in part])
            part = [item_id for item_id, exists in zip(part, exist, strict=True) if exists]
        with_data += part if count else ()
    return with_data


def read_parts(
    queue: Queue, script: str, ids: Iterable[bytes], fields: int, **args: Any
) -> Iterator[tuple[Sequence[bytes], Sequence[Any]]]:
    """Run a script that returns so many fields for each ID, and may end early, after much data.
    Yields the IDs of each reply with it; none is left out."""
    args["bytes_max"] = BUDGET.bytes
    for batch, reply in queue.read_each(script, ids, **args):
        while True:
            read = len(reply) // fields
            yield batch[:read], reply
            batch = batch[read:]
            if not batch:
                break
            reply = queue.run(script, *batch, **args)
