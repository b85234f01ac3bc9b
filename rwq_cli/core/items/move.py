"""Moving items to another queue."""

from collections.abc import Callable, Iterable, Iterator

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import act_after_second_look
from rwq_cli.core.items.journal import Journal, NoJournal
from rwq_cli.core.items.remove import Destination, Marks, Remover
from rwq_cli.core.items.restore import Line
from rwq_cli.core.items.slot_move import SlotMover
from rwq_cli.core.keys import QueueKeys, hash_tag
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.snapshot import ItemSnapshot


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes,
    journal: Journal,
    *,
    force: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; each is in one of the two at every instant.

    Between two slots of a cluster, see `SlotMover`.

    Args:
        queue: The queue that the items are in.
        ids: The IDs, as for `remove`.
        to: The other queue's name.
        journal: The journal to write the items to first.
        force: Move leased items, too, and end their leases.
        expected: The conditions that the items must still meet.
        grace_s: See `release`.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` is the number of processed IDs.

    Returns:
        For each ID `MOVED`, `MISSING`, `CHANGED`, `WRONG_TYPE`, `NOT_OWNER` if it has a lease, or
        `CONFLICT` if the other queue has this ID.
    """
    mover = _mover(queue, queue.sibling(to))
    destination = Destination(QueueKeys(to), force)

    def remover(is_first_look: bool) -> Remover:
        return mover(
            queue,
            journal,
            destination,
            is_first_look=is_first_look,
            expected=expected,
            dry_run=dry_run,
        )

    return Outcomes(_moved(queue, remover, ids, expected, grace_s, force=force, dry_run=dry_run))


def move_back(
    queue: Queue,
    lines: Callable[[], Iterable[Line]],
    moved_to: bytes,
    *,
    file_id: bytes | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to.

    Items that are leased there, or now have other data, stay there.

    Args:
        queue: The queue to move them back to.
        lines: Gives the items as they were; called twice.
        moved_to: The name of the queue that they were moved to.
        file_id: The SHA-256 of the file, whose lines are marked as by `restore`; None to mark none.
        grace_s: See `release`.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` is the number of processed IDs.

    Returns:
        For each item the same as `move`, or `ALREADY_THERE` if it is back; `IMPORTED_BEFORE` if an
        interrupted run has moved it back.
    """
    saved: dict[bytes, str] = {}
    numbers: dict[bytes, int] = {}
    for number, item, _ in lines():
        assert isinstance(item, ItemSnapshot)
        saved[item.item_id], numbers[item.item_id] = fingerprint(item.data), number
    source = queue.sibling(moved_to)
    mover = _mover(source, queue)

    def remover(is_first_look: bool) -> Remover:
        return mover(
            source,
            NoJournal(),
            Destination(queue.keys),
            is_first_look=is_first_look,
            saved=saved,
            marks=None if file_id is None else Marks(queue.keys.undo(file_id), numbers),
            dry_run=dry_run,
        )

    ids = (line.entry.item_id for line in lines())
    batches = _moved(source, remover, ids, ANY, grace_s, force=False, dry_run=dry_run)
    return Outcomes(_already_there(queue, batches))


def _mover(source: Queue, to: Queue) -> type[Remover]:
    """What moves items between these queues: one script, unless they are in two slots."""
    in_one_slot = hash_tag(source.name) == hash_tag(to.name)
    return Remover if in_one_slot or not source.connection.is_cluster else SlotMover


def _moved(
    queue: Queue,
    remover: Callable[[bool], Remover],
    ids: Iterable[bytes | Flush],
    expected: Expected,
    grace_s: float,
    *,
    force: bool,
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Move items with the remover that `remover` gives for the first look or a later one."""

    def act(ids: Iterable[bytes | Flush], is_first_look: bool) -> Iterator[OutcomeBatch]:
        return remover(is_first_look).apply(ids)

    if not dry_run:
        remover(False).finish()
    if force:
        yield from act(ids, False)
    else:
        yield from act_after_second_look(queue, act, ids, expected=expected, grace_s=grace_s)


def _already_there(queue: Queue, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
    """Report missing items that are back in the queue as `ALREADY_THERE`."""
    for batch in batches:
        missing = batch.ids_with(Status.MISSING)
        exists = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in missing])
        back = {item_id for item_id, there in zip(missing, exists, strict=True) if there}
        yield (
            OutcomeBatch.of(
                Outcome(each.item_id, Status.ALREADY_THERE) if each.item_id in back else each
                for each in batch
            )
            if back
            else batch
        )
