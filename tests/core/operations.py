"""How tests run an operation of the core on many items, and what it says of each ID.

`tests/verbs.py` has those of each verb.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.core import Selection, Source, WorkQueue
from rwq_cli.core.inspect.listing import choose, leases
from rwq_cli.core.inspect.lookup import inspect_items
from rwq_cli.core.inspect.places import read_items
from rwq_cli.core.inspect.results import Result, ResultStatus, read_result_keys
from rwq_cli.core.items.add import Due, NewItem, add_batches, batched_items
from rwq_cli.core.items.complete import complete, remove
from rwq_cli.core.items.export import Export
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.move import move, move_back
from rwq_cli.core.items.purge import PurgedResults, purge
from rwq_cli.core.items.restore import OnConflict, edit_items, restore
from rwq_cli.core.items.schedule import bury, promote, release
from rwq_cli.core.model import State, Status
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.state.expected import Expected
from rwq_cli.core.state.snapshots import ItemSnapshot, Place, Skipped

# Of each ID, in the order in which it was said: the ID, and what.
Told = list[tuple[Any, ...]]
PAD = b"pad-"


class Operation(NamedTuple):
    """An operation of the core with a dry run.

    Attributes:
        run: Runs it on these IDs, or as a dry run.
        takes_ids: Whether it acts on no others.
        ordered: Whether a dry run tells the IDs in the order of the run.
        expects: Runs it, where it can, on items that were chosen under these conditions.
        option: The option with which the command runs it, if it needs other permissions then.
    """

    run: Callable[[WorkQueue, Sequence[bytes], bool], Told]
    takes_ids: bool = True
    ordered: bool = False
    expects: Callable[[WorkQueue, Sequence[bytes], Expected], Told] | None = None
    option: str = ""


def outcomes(
    operation: Callable[..., Any], *, ordered: bool = False, option: str = "", **options: Any
) -> Operation:
    """What yields an outcome for each ID."""

    def run(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool, **more: Any) -> Told:
        told = operation(queue, list(ids), dry_run=dry_run, **options, **more)
        return [(outcome.item_id, outcome.status.value, outcome.holder) for outcome in told]

    can_expect = operation in (complete, release, bury, remove, move)
    return Operation(
        run,
        ordered=ordered,
        expects=(lambda queue, ids, expected: run(queue, ids, False, expected=expected))
        if can_expect
        else None,
        option=option,
    )


def of_all(run: Callable[[WorkQueue, bool], Iterable[tuple[Any, ...]]]) -> Operation:
    return Operation(lambda queue, _ids, dry_run: list(run(queue, dry_run)), takes_ids=False)


def cleaning(name: str, **options: Any) -> Operation:
    return of_all(
        lambda queue, dry_run: (
            (action.item_id, action.action.value, action.state.value, action.where)
            for action in getattr(queue, name)(dry_run=dry_run, **options)
        )
    )


def _lease(queue: WorkQueue, dry_run: bool) -> Iterator[tuple[Any, ...]]:
    """The place of each among those that are leased."""
    leased = (item.item_id for item in lease_from([queue], 1_000_000, dry_run=dry_run))
    others = (item_id for item_id in leased if not item_id.startswith(PAD))
    return ((item_id, at) for at, item_id in enumerate(others))


def own(ids: Iterable[bytes]) -> list[bytes]:
    """For what looks for each ID in the whole lists: some, each once."""
    return [item_id for item_id in dict.fromkeys(ids) if not item_id.startswith(PAD)][:70]


def _lease_by_id(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool) -> Told:
    found = lease_ids(queue, own(ids), dry_run=dry_run)
    return [(item.item_id, is_leased or item.state) for item, is_leased in found]


def adding(due: Due | None = None, *, unique: bool = False) -> Operation:
    def run(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool) -> Told:
        items = [NewItem(item_id, b"new", due) for item_id in (*filter(None, ids), b"new", b"new")]
        found = add_batches(queue, batched_items(items), unique=unique, dry_run=dry_run)
        return [(o.item_id, o.status) for o in found]

    return Operation(run, ordered=True)


def _purge(queue: WorkQueue, dry_run: bool) -> Iterator[tuple[Any, ...]]:
    left = PurgedResults()
    for outcome in purge(queue, None, results=left, dry_run=dry_run):
        yield outcome.item_id, outcome.status.value
    yield b"", left


def restoring(on_conflict: OnConflict) -> Operation:
    """Of each ID the data that it may have or other data, and of some a result."""

    def entries(ids: Sequence[bytes]) -> Iterator[ItemSnapshot | Result]:
        for item_id in dict.fromkeys((*ids, b"n")):
            data = (b"data of " + item_id, b"other", b"another")[sum(item_id) % 3]
            yield ItemSnapshot(item_id, data, State.WAITING, Place.MAIN)
            if sum(item_id) % 50 == 48:
                yield Result(item_id, ResultStatus.COMPLETED, 5)

    def run(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool) -> Told:
        tally: Counter[Status] = Counter()
        found = restore(
            queue,
            (Line(number, entry) for number, entry in enumerate(entries(ids), 2)),
            on_conflict=on_conflict,
            file_id=_file_id(ids),
            results=tally,
            dry_run=dry_run,
        )
        return [*((o.item_id, o.status) for o in found), (b"", tally)]

    return Operation(run, ordered=True)


def _set_data(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool) -> Told:
    found: Told = []
    for item_id in own(ids):
        for item in chain.from_iterable(read_items(queue, [item_id], Skipped())):
            (outcome,) = edit_items(queue, [(item, b"new")], dry_run=dry_run)
            found.append((item_id, outcome.status))
    return found


def _file_id(ids: Iterable[bytes]) -> bytes:
    """Of an undo file of these IDs."""
    return sha256(b"\n".join(ids)).hexdigest().encode()


def _as_they_were(ids: Iterable[bytes], data: bytes | None = None) -> Iterator[Line]:
    """The lines of an undo file, of a change that left the data that the IDs may have."""
    for number, item_id in enumerate(dict.fromkeys(ids), 2):
        is_now = b"data of " + item_id
        was = ItemSnapshot(item_id, data or is_now, State.WAITING, Place.MAIN)
        yield Line(number, was, sha256(is_now).hexdigest())


def _undo(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool, *, in_place: bool = False) -> Told:
    """Of an import or of an edit."""
    found = restore(
        queue,
        _as_they_were(ids, b"before"),
        on_conflict=OnConflict.REPLACE,
        front=True,
        in_place=in_place,
        file_id=_file_id(ids),
        dry_run=dry_run,
    )
    return [(o.item_id, o.status) for o in found]


def _undo_move(queue: WorkQueue, ids: Sequence[bytes], dry_run: bool) -> Told:
    """As if the items, if their data is as it was, had come from another queue."""
    other = WorkQueue(queue.connection, b"other", clock=queue.clock)
    lines, file_id = _as_they_were(ids), _file_id(ids)
    told = move_back(other, lines, queue.name, file_id=file_id, dry_run=dry_run)
    return [(o.item_id, o.status) for o in told]


def _diagnose(queue: WorkQueue, dry_run: bool, *, fix: bool = True) -> Iterator[tuple[Any, ...]]:
    for found in diagnose(queue, fix=fix, dry_run=dry_run, all_ids=True).findings:
        yield found.code.value.encode(), found.count, found.fixed, found.left
        yield from ((i, found.code.value) for i in (() if found.of_keys else found.examples))


def _promote(queue: WorkQueue, dry_run: bool) -> Iterator[tuple[Any, ...]]:
    return ((o.item_id, o.status) for batch in promote(queue, dry_run=dry_run) for o in batch)


LEASE = of_all(_lease)
LEASE_BY_ID = Operation(_lease_by_id, takes_ids=False, ordered=True, option="--id")
PROMOTION = of_all(_promote)
SET_DATA = Operation(_set_data, takes_ids=False, ordered=True)
PURGE = of_all(_purge)
UNDO_OF_AN_IMPORT = Operation(_undo, ordered=True)
UNDO_OF_A_SET = Operation(partial(_undo, in_place=True), ordered=True)
UNDO_OF_A_MOVE = Operation(_undo_move, ordered=True)
REPAIRS = of_all(_diagnose)._replace(option="--fix")


def _states(queue: WorkQueue, ids: Sequence[bytes], _dry_run: bool) -> Told:
    return [(each.facts.item_id, each.facts.state) for each in inspect_items(queue, list(ids))]


def _chosen(queue: WorkQueue, _dry_run: bool) -> Iterator[tuple[Any, ...]]:
    """By which states each ID is chosen."""
    for state in (None, *(state for state in State if state.is_item)):
        states = None if state is None else frozenset({state})
        yield from ((item_id, state) for item_id in choose(queue, Selection(states=states)).ids)


def _exported(queue: WorkQueue, _dry_run: bool) -> Iterator[tuple[Any, ...]]:
    for item in (item for batch in Export(queue).batches() for item in batch):
        lease = item.lease and item.lease.holder
        yield (
            *(item.item_id, item.data, item.state, item.place, lease, item.reason, item.returns),
            # The times themselves depend on when the queue was made.
            *(item.due_ms is None, item.buried_ms is None),
        )


def _results(queue: WorkQueue, ids: Sequence[bytes], _dry_run: bool) -> Told:
    batches = read_result_keys(queue, ids)
    found = ((each.item_id, each.result) for batch in batches for each in batch)
    return [(item_id, result and result.status) for item_id, result in found]


EVERYWHERE = Source(main=True, processing=True, delayed=True, buried=True, deep=True)
# What only looks.
LOOKS: dict[str, Operation] = {
    "states": Operation(_states),
    "results": Operation(_results),
    "deep listing": of_all(
        lambda queue, _: ((i.item_id, i.state) for i in queue.items(EVERYWHERE, bare=True))
    ),
    "leases": of_all(lambda queue, _: ((i.item_id, i.state) for i in leases(queue, bare=True))),
    "choice": of_all(_chosen),
    "export": of_all(_exported),
    "diagnosis": of_all(lambda queue, dry_run: _diagnose(queue, dry_run, fix=False)),
}
