"""Moving items to another queue: `lua/ops/move.lua`, or a `Transfer` to one that is elsewhere."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Act, by_script, run
from rwq_cli.core.items.journal import Journal, NoJournal, once_read, saving
from rwq_cli.core.items.restore import Line
from rwq_cli.core.items.transfer import Transfer
from rwq_cli.core.keys import QueueKeys, hash_tag
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.snapshot import ItemSnapshot

_NO_LINES: Mapping[bytes, int] = {}


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes | Queue,
    journal: Journal,
    *,
    force: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; see `WorkQueue.move_many`.

    Each is in one of the two at every instant. What is moved is written to the journal first; items
    that do not meet the conditions of `expected` any more are `CHANGED`.
    """
    other = to if isinstance(to, Queue) else queue.sibling(to)
    return Outcomes(_moved(queue, other, ids, journal, expected, grace_s, force, dry_run=dry_run))


def move_back(
    queue: Queue,
    lines: Callable[[], Iterable[Line]],
    moved_to: bytes | Queue,
    *,
    file_id: bytes | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to, by its name or handle.

    Items that are leased there, or now have other data, stay there. `lines` gives the items as they
    were; it is called twice. Lines of the file with this SHA-256 are marked as by `restore`. The
    outcomes are those of `move`, or `ALREADY_THERE` for an item that is back, `IMPORTED_BEFORE` if
    an interrupted run has moved it back.
    """
    saved: dict[bytes, str] = {}
    numbers: dict[bytes, int] = {}
    for number, item, _ in lines():
        assert isinstance(item, ItemSnapshot)
        saved[item.item_id], numbers[item.item_id] = fingerprint(item.data), number
    source = moved_to if isinstance(moved_to, Queue) else queue.sibling(moved_to)
    marks = b"" if file_id is None else queue.keys.undo(file_id)
    known = (saved, marks, numbers if marks else {})
    ids = (line.entry.item_id for line in lines())
    batches = _moved(source, queue, ids, NoJournal(), ANY, grace_s, known=known, dry_run=dry_run)
    return Outcomes(_already_there(queue, _as_moved(batches, saved)))


def _moved(
    queue: Queue,
    to: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    expected: Expected,
    grace_s: float,
    force: bool = False,
    *,
    known: tuple[Mapping[bytes, str] | None, bytes, Mapping[bytes, int]] = (None, b"", _NO_LINES),
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Move items; `known` are the fingerprints, the key of the marks, and the lines of an undo."""
    # Before anything is held here.
    to.keys.check_new()
    to.connection.check_one_slot()
    saved, marks, lines = known
    is_near = queue.connection.root is to.connection.root and (
        not queue.connection.is_cluster or hash_tag(queue.name) == hash_tag(to.name)
    )
    expected, looked_twice = once_read(queue, expected), expected.looked_twice
    act: Act
    finished: set[bytes] = set()
    if is_near:
        args = moving_args(to.keys, force=force, marks=marks, lines=lines)
        act = by_script(queue, "move", args, expected, dry_run=dry_run)
    else:
        act = transfer = Transfer(queue, to, force, expected, dry_run)
        for batch in transfer.finish():
            finished.update(batch.ids)
            if len(batch):
                yield batch
    act = saving(
        queue, journal, act, expected, keeps_leased=not force, saved=saved, dry_run=dry_run
    )
    grace = None if force else grace_s
    left = (i for i in ids if i not in finished) if finished else ids
    yield from run(queue, act, left, "moving", grace_s=grace, looked_twice=looked_twice)


def moving_args(
    keys: QueueKeys, *, force: bool, marks: bytes = b"", lines: Mapping[bytes, int] = _NO_LINES
) -> Callable[[Sequence[bytes]], Mapping[str, object]]:
    """The arguments of `lua/ops/move.lua` to a queue, for some IDs."""
    known = {
        **keys.as_target,
        "keeps_leased": not force,
        "is_first_look": False,
        "marks": marks,
    }
    return lambda ids: {**known, "lines": ";".join(str(lines[i]) for i in ids if lines)}


def _as_moved(batches: Iterable[OutcomeBatch], known: Container[bytes]) -> Iterator[OutcomeBatch]:
    """Report what was finished of an earlier run as `MOVED`, of these items."""
    for batch in batches:
        if not batch.count(Status.FINISHED):
            yield batch
            continue
        yield OutcomeBatch.of(
            each._replace(status=Status.MOVED) if each.status is Status.FINISHED else each
            for each in batch
            if each.item_id in known
        )


def _already_there(queue: Queue, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
    """Report missing items that are back in the queue as `ALREADY_THERE`."""
    for batch in batches:
        missing = batch.ids_with(Status.MISSING)
        exists = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in missing])
        back = {item_id for item_id, there in zip(missing, exists, strict=True) if there}
        yield OutcomeBatch.of(
            Outcome(each.item_id, Status.ALREADY_THERE) if each.item_id in back else each
            for each in batch
        )
