"""Extending leases: `lua/ops/touch.lua`."""

from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.batches import BLOCK_IDS, Flush, acknowledged, in_batches
from rwq_cli.core.clock import LEASE_S, lease_time_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Outcomes


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

    def calls() -> Iterator[tuple[list[bytes], Sequence[object]] | None]:
        queue.progress.begin("touching")
        for block in in_batches(ids, items_max=BLOCK_IDS):
            for batch in in_batches(block):
                once = list(dict.fromkeys(batch))
                rest = once if owner is None else [word for i in once for word in (i, owner)]
                has_owners = owner is not None
                yield once, script_words("touch", rest, lease_ms=lease_ms, has_owners=has_owners)
            # The source may pause here.
            yield None

    batches = queue.act_each("touch", calls(), dry_run=dry_run)
    return Outcomes(acknowledged(queue.progress, batches))
