"""Extending leases: `lua/ops/touch.lua`."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.batches import Flush, in_batches
from rwq_cli.core.clock import LEASE_S, lease_time_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.model import OutcomeBatch, Outcomes


def touch(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    lease_s: float = LEASE_S,
    owner: bytes | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Give live leases a new expiry; see `WorkQueue.touch_many`."""
    lease_ms = lease_time_ms(lease_s)

    def batches() -> Iterator[OutcomeBatch]:
        queue.progress.begin("touching")
        for batch in in_batches(ids):
            distinct = list(dict.fromkeys(batch))
            words: list[bytes] = distinct
            if owner is not None:
                words = [word for item_id in distinct for word in (item_id, owner)]
            args = {"lease_ms": lease_ms, "has_owners": owner is not None}
            reply = queue.run("touch", *words, dry_run=dry_run, **args)
            queue.progress.advance(len(batch))
            yield OutcomeBatch.from_reply(distinct, reply)

    return Outcomes(batches())
