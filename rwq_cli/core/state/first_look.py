"""What a first look saw, so that a second one recognizes the items."""

from rwq_cli.core.state.rules import Facts


class FirstLook:
    """When a look began, and the data of the items that it saw.

    An item may be completed, and a new one added under its ID with other data, between two looks;
    or rwq may have pushed it, so that a worker may have popped it, and be about to set its lease.
    A settling lease tells when that was. `lua/ops/repair.lua` checks the same.

    Args:
        at_ms: When the look began by the server's clock, unix ms.

    Attributes:
        at_ms: That time.
        digests: By ID, the digest of its data.
    """

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        self.digests: dict[bytes, bytes] = {}

    def note(self, facts: Facts) -> None:
        """Note an item, if nobody and no guard protects it."""
        if facts.digest:
            self.digests.setdefault(facts.item_id, facts.digest)

    def is_same(self, facts: Facts) -> bool:
        """Whether an item has the data that was seen, if any, and was not pushed since."""
        seen = self.digests.get(facts.item_id)
        return seen is None or (facts.digest == seen and (facts.pushed_ms or 0) <= self.at_ms)
