"""Extending leases: `lua/ops/touch.lua`."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rwq_cli.core.batches import BLOCK_IDS, Flush, in_batches
from rwq_cli.core.clock import LEASE_S, lease_time_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import OutcomeBatch, Outcomes
from rwq_cli.core.server.commands import REFUSED


def touch(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    lease_s: float = LEASE_S,
    owner: bytes | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Give live leases a new expiry; see `WorkQueue.touch_many`."""
    args: dict[str, Any] = {"lease_ms": lease_time_ms(lease_s), "has_owners": owner is not None}

    def batches() -> Iterator[OutcomeBatch]:
        queue.progress.begin("touching")
        sent: deque[list[bytes]] = deque()

        def calls() -> Iterator[Sequence[object] | None]:
            for block in in_batches(ids, items_max=BLOCK_IDS):
                for batch in in_batches(block):
                    sent.append(list(dict.fromkeys(batch)))
                    rest = sent[-1] if owner is None else [w for i in sent[-1] for w in (i, owner)]
                    yield script_words("touch", rest, **args)
                # The source may pause here.
                yield None

        for reply in queue.run_each("touch", calls(), dry_run=dry_run):
            touched = sent.popleft()
            if reply is not REFUSED:
                queue.progress.advance(len(touched))
                yield OutcomeBatch.from_reply(touched, reply)

    return Outcomes(batches())
