"""Moving items to another queue: `lua/ops/move.lua`, or a `Transfer` to one that is elsewhere."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from rwq_cli.core.batches import Flush, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.operation import GROUP_CALLS, Operation
from rwq_cli.core.items.transfer import Transfer, with_status
from rwq_cli.core.keys import hash_tag
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected, token_of
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import existing
from rwq_cli.core.state.snapshots import ItemSnapshot


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes | str | Queue,
    journal: Journal | None = None,
    *,
    force: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    undoes: tuple[bytes, Mapping[bytes, int] | None] = (b"", None),
    transfer: Transfer | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; see `WorkQueue.move_many`.

    Each is in one of the two at every instant.

    Args:
        undoes: The key of the marks of a file, and the number of each line.
        transfer: That of several rounds, so that what a cut move has left is looked for once.
    """
    target = queue.sibling(to)

    def batches() -> Iterator[OutcomeBatch]:
        # Before anything is held here.
        target.keys.check_new()
        target.check_one_slot()
        is_near = _are_near(queue, target)
        far = None if is_near else transfer or Transfer(queue, target, force=force)
        to_nowhere = queue.keys.absent, force, b"", None
        args = _args(target.name, force, *undoes) if is_near else _args(*to_nowhere)
        moving = _Move(
            queue,
            "move",
            args,
            "moving",
            expected,
            far=far,
            journal=journal,
            keeps_leased=not force,
            grace_s=None if force else grace_s,
            dry_run=dry_run,
        )
        if far is None:
            yield from moving.run(ids)
            return
        finished: set[bytes] = set()
        with nullcontext() if dry_run else far.turn():
            for batch in far.finishing() if dry_run else far.begin():
                finished.update(batch.ids)
                yield batch
            yield from moving.run(item_id for item_id in ids if item_id not in finished)

    return Outcomes(batches())


@dataclass(kw_only=True)
class _Move(Operation):
    """Moves items; those that are `far` once they were read, and the script says that they may."""

    far: Transfer | None

    @property
    def reads_first(self) -> bool:
        return super().reads_first or not (self.far is None or self.dry_run)

    def send(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        if self.far is None:
            yield from super().send(calls)
            return
        look = replace(self, far=None, journal=None, dry_run=True)
        burial = self.far.burial(self.expected)
        for group in in_batches((call for call in calls if call.ids), items_max=GROUP_CALLS):
            outcomes = {outcome.item_id: outcome for batch in look.send(group) for outcome in batch}
            movable = [i for i, outcome in outcomes.items() if outcome.status is Status.MOVED]
            conflicting = existing(self.far.to, movable)
            outcomes |= with_status(conflicting, Status.CONFLICT)
            if not self.dry_run:
                yield from self.far.begin()
                outcomes |= self.far.move(group, set(movable).difference(conflicting), burial)
            for call in group:
                yield OutcomeBatch.of(outcomes[item_id] for item_id in call.ids)
            self.far.stop_if_asked()


def _are_near(queue: Queue, to: Queue) -> bool:
    """Whether one script reaches both queues."""
    is_one_server = queue.connection.root is to.connection.root
    is_one_slot = not queue.connection.is_cluster or hash_tag(queue.name) == hash_tag(to.name)
    return is_one_server and is_one_slot


def move_back(
    queue: Queue,
    lines: Iterable[Line],
    moved_to: bytes | Queue,
    *,
    file_id: bytes | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to, by its name or handle.

    Items that are leased there, or now have other data, stay there. `lines` gives the items as they
    were. Lines of the file with this SHA-256 are marked as by `restore`. The outcomes are those of
    `move`, or `ALREADY_THERE` for an item that is back, `IMPORTED_BEFORE` if an interrupted run has
    moved it back.
    """
    tokens: dict[bytes, bytes] = {}
    numbers: dict[bytes, int] = {}
    for number, item, _ in lines:
        assert isinstance(item, ItemSnapshot)
        tokens[item.item_id], numbers[item.item_id] = token_of(item.data), number
    undoes = (b"", None) if file_id is None else (queue.keys.undo(file_id), numbers)
    moved = move(
        queue.sibling(moved_to),
        tokens,
        queue,
        expected=Expected(tokens=tokens),
        grace_s=grace_s,
        undoes=undoes,
        dry_run=dry_run,
    )

    def batches() -> Iterator[OutcomeBatch]:
        for batch in moved.batches:
            outcomes = batch.only(tokens.keys())
            # What an undo finishes, it has moved back.
            statuses = dict.fromkeys(outcomes.ids_with(Status.FINISHED), Status.MOVED)
            back_before = existing(queue, outcomes.ids_with(Status.MISSING))
            statuses |= dict.fromkeys(back_before, Status.ALREADY_THERE)
            yield OutcomeBatch.of(
                outcome._replace(status=statuses.get(outcome.item_id, outcome.status))
                for outcome in outcomes
            )

    return Outcomes(batches())


def _args(
    to: bytes, force: bool, marks: bytes, lines: Mapping[bytes, int] | None
) -> Callable[[Sequence[bytes]], Mapping[str, object]]:
    """The arguments of `lua/ops/move.lua` for some IDs."""
    args = {"to": to, "keeps_leased": not force, "marks": marks}
    return lambda ids: {**args, "lines": ";".join(str(lines[i]) for i in ids if lines)}
