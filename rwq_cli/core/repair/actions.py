"""What a clean did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.model import Batched, OutcomeBatch, State, Status


class Repair(StrEnum):
    """What a clean did to one ID."""

    RETURNED = "returned"
    DROPPED = "dropped"
    PROMOTED = "promoted"
    PRUNED = "pruned"
    BURIED = "buried"


class CleanAction(NamedTuple):
    """One repair that a clean did, or in a dry run would do.

    Attributes:
        item_id: The ID.
        action: The repair.
        state: The state that both looks saw, which is the reason; of a pruned entry, the state of
            its item.
        where: The structure that was changed: `main`, `processing`, `cleaning`, `delayed`,
            `buried` or `returns`; None for an item that was in none.
    """

    item_id: bytes
    action: Repair
    state: State
    where: str | None = None


@dataclass(slots=True)
class CleanBatch:
    """The actions of one call of a clean.

    `state` is that of the IDs that were neither pruned, whose outcome has it, nor dropped, if
    `dropped` is another one. `where` is that of `CleanAction`.
    """

    outcomes: OutcomeBatch
    state: State
    where: str | None
    dropped: State | None = None

    @property
    def ids(self) -> Sequence[bytes]:
        """The IDs."""
        return self.outcomes.ids

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[CleanAction]:
        for item_id, status, _, pruned in self.outcomes:
            dropped = self.dropped if status is Status.DROPPED else None
            yield CleanAction(
                item_id, Repair(status.value), pruned or dropped or self.state, self.where
            )

    def counts(self) -> dict[Repair, int]:
        """How often each repair was done."""
        return {Repair(status.value): n for status, n in self.outcomes.counts().items()}


class CleanActions(Batched[CleanAction]):
    """The actions of a clean."""

    batches: Iterator[CleanBatch]
