"""A dry run is the run without its writes: it says the same, and changes nothing."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from importlib import import_module
from inspect import isfunction, signature
from pkgutil import iter_modules
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue, items
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.add import Due, NewItem
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.items.move import move as move_items, move_back
from rwq_cli.core.items.purge import PurgedResults, purge as purge_queue
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.restore import Line, OnConflict, restore as restore_items
from rwq_cli.core.items.results import ResultOptions, ResultTally
from rwq_cli.core.items.schedule import (
    bury as bury_items,
    kick as kick_items,
    promote as promote_items,
    release as release_items,
)
from rwq_cli.core.items.set_data import edit_items, put_back, read_item
from rwq_cli.core.items.touch import touch as touch_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import State
from rwq_cli.core.repair.clean import deep_clean, light_clean
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.state.expected import Expected
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.broken_queues import contents, make_broken, make_idle, pad
from tests.conftest import HOLDER, QUEUE, FakeClock, Foreign
from tests.item_cases import ITEM_CASES
from tests.long import usual

Verb = Callable[[WorkQueue, list[bytes], bool], list[Any]]
_THOUSANDS = usual(3_000, long=20_000)
_SEEDS = usual(2, long=100)


def _outcomes(operation: Callable[..., Any], *, ordered: bool = False, **options: Any) -> Verb:
    """What the verb says of each ID, and where `ordered` is set, in which order."""

    def verb(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
        outcomes = operation(queue, list(ids), dry_run=dry_run, **options)
        found = [(o.item_id, o.status.value, o.holder) for o in outcomes]
        return found if ordered else sorted(found)

    return verb


def _clean(name: str, **options: Any) -> Verb:
    def verb(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:  # noqa: ARG001
        found = getattr(queue, name)(dry_run=dry_run, **options)
        return sorted((a.item_id, a.action.value, a.state.value, a.where or "") for a in found)

    return verb


def _lease(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    return [item.item_id for item in lease_from([queue], len(ids) * 3, dry_run=dry_run)]


def _lease_by_id(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    found = lease_ids(queue, ids[:60], dry_run=dry_run)
    return [(a.item.item_id, a.is_leased, a.is_leased or a.item.state) for a in found]


def _add(due: Due | None = None, *, unique: bool = False) -> Verb:
    def verb(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
        items = [NewItem(item_id, b"new", due) for item_id in (*filter(None, ids), b"new", b"new")]
        found = queue.add_many(items, unique=unique, dry_run=dry_run)
        return [(o.item_id, o.status) for o in found]

    return verb


def _purge(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:  # noqa: ARG001
    left = PurgedResults()
    found = purge_queue(queue, NoJournal(), results=left, dry_run=dry_run)
    return [*sorted((o.item_id, o.status.value) for o in found), left]


def _restore(on_conflict: str) -> Verb:
    """Of each ID the data that it may have, other data, and the same ID once more."""

    def verb(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
        entries: list[ItemSnapshot | Result] = []
        for at, item_id in enumerate((*ids, *ids[::7], b"new", b"new")):
            data = (b"data of " + item_id, b"other", b"another")[at % 3]
            entries.append(ItemSnapshot(item_id, data, State.WAITING, Place.MAIN))
            if at % 50 == 0 and at < 1000:
                entries.append(Result(item_id, ResultStatus.COMPLETED, at))
        tally = ResultTally()
        found = restore_items(
            queue,
            (Line(number, entry) for number, entry in enumerate(entries, 2)),
            on_conflict=OnConflict(on_conflict),
            file_id=_file_id(ids),
            results=tally,
            dry_run=dry_run,
        )
        return [*((o.item_id, o.status) for o in found), tally]

    return verb


def _set_data(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    found = []
    for item_id in dict.fromkeys(ids[:60]):
        with suppress(WrongType):
            if item := read_item(queue, item_id):
                found += edit_items(queue, [(item, b"new")], dry_run=dry_run)
    return found


def _as_they_were(ids: Iterable[bytes]) -> Iterator[Line]:
    """The lines of an undo file, of a change that left the data that the IDs may have."""
    for number, item_id in enumerate(ids, 2):
        was = ItemSnapshot(item_id, b"before", State.WAITING, Place.MAIN)
        yield Line(number, was, sha256(b"data of " + item_id).hexdigest())


def _file_id(ids: Iterable[bytes]) -> bytes:
    """Of an undo file of these IDs."""
    return sha256(b"\n".join(ids)).hexdigest().encode()


def _undo_import(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    found = restore_items(
        queue,
        _as_they_were(ids),
        on_conflict=OnConflict.REPLACE,
        front=True,
        file_id=_file_id(ids),
        dry_run=dry_run,
    )
    return [(o.item_id, o.status) for o in found]


def _undo_set(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    lines = _as_they_were(dict.fromkeys(ids[:60]))
    edited = ((_item(line), line.replaced_by or "") for line in lines)
    return [(o.item_id, o.status) for o in put_back(queue, edited, dry_run=dry_run)]


def _item(line: Line) -> ItemSnapshot:
    assert isinstance(line.entry, ItemSnapshot)
    return line.entry


def _undo_move(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:
    """As if the items, if their data is as it was, had come from another queue."""
    lines = [
        line._replace(entry=_item(line)._replace(data=b"data of " + line.entry.item_id))
        for line in _as_they_were(dict.fromkeys(ids))
    ]
    other = type(queue)(queue.connection, b"other", clock=queue.clock)
    found = move_back(other, lambda: lines, queue.name, file_id=_file_id(ids), dry_run=dry_run)
    return [(o.item_id, o.status) for o in found]


def _fix(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:  # noqa: ARG001
    found = diagnose(queue, fix=True, dry_run=dry_run, all_ids=True).findings
    return [(f.code, f.count, sorted(f.examples), f.fixed, f.left) for f in found]


def _promote(queue: WorkQueue, ids: list[bytes], dry_run: bool) -> list[Any]:  # noqa: ARG001
    batches = promote_items(queue, dry_run=dry_run)
    return sorted((o.item_id, o.status.value) for batch in batches for o in batch)


VERBS: dict[str, Verb] = {
    "add": _add(),
    "add unique": _add(unique=True),
    "add later": _add(Due(60_000, from_now=True)),
    "complete": _outcomes(complete_items, ordered=True),
    "complete by owner": _outcomes(complete_items, ordered=True, owner=b"them"),
    "complete with a result": _outcomes(
        complete_items, ordered=True, result_options=ResultOptions(b"result")
    ),
    "complete what waits": _outcomes(
        complete_items, ordered=True, expected=Expected(states=frozenset({State.WAITING}))
    ),
    "touch": _outcomes(touch_items, ordered=True),
    "release": _outcomes(release_items),
    "release by force": _outcomes(release_items, force=True),
    "release one's own": _outcomes(release_items, own_only=True),
    "release to the front": _outcomes(release_items, front=True),
    "release later": _outcomes(release_items, delay_s=1000),
    "bury": _outcomes(bury_items),
    "bury by force": _outcomes(bury_items, force=True),
    "kick": _outcomes(kick_items),
    "promotion": _promote,
    "remove": _outcomes(remove_items, ordered=True, journal=NoJournal()),
    "move": _outcomes(move_items, ordered=True, to=b"other", journal=NoJournal()),
    "move by force": _outcomes(
        move_items, ordered=True, to=b"other", journal=NoJournal(), force=True
    ),
    "set data": _set_data,
    "purge": _purge,
    "restore": _restore("fail"),
    "restore and skip": _restore("skip"),
    "restore and replace": _restore("replace"),
    "undo of an import": _undo_import,
    "undo of a set": _undo_set,
    "undo of a move": _undo_move,
    "lease": _lease,
    "lease by ID": _lease_by_id,
    "light clean": _clean("light_clean"),
    "light clean that buries": _clean("light_clean", bury_after=2),
    "deep clean": _clean("deep_clean"),
    "deep clean that buries": _clean("deep_clean", bury_after=2),
    "doctor's repairs": _fix,
}


def _operations() -> Iterator[Any]:
    """The functions of the core that can do a dry run on a queue."""
    yield from (light_clean, deep_clean, diagnose)
    for module in iter_modules(items.__path__, f"{items.__name__}."):
        for name, function in vars(import_module(module.name)).items():
            if isfunction(function) and not name.startswith(("_", "prune_")):
                parameters = signature(function).parameters
                if "dry_run" in parameters and next(iter(parameters)) == "queue":
                    yield function


# The operations that a verb of this table and of that in test_verdicts.py calls.
WITH_DRY_RUN = {function.__code__: function.__name__ for function in _operations()}


def operations_called(
    foreign: Foreign, connection: Connection, verbs: Iterable[Callable[[WorkQueue], object]]
) -> set[str]:
    """The operations with a dry run that the verbs call, each where `id-0` waits."""
    called: set[Any] = set()
    for verb in verbs:
        foreign.raw.flushall()
        foreign.waiting(b"id-0")
        sys.setprofile(lambda frame, *_: called.add(frame.f_code))
        try:
            verb(WorkQueue(connection, QUEUE, clock=FakeClock()))
        finally:
            sys.setprofile(None)
    return {name for code, name in WITH_DRY_RUN.items() if code in called}


def _of_one(verb: Verb, queue: WorkQueue) -> object:
    return verb(queue, [b"id-0"], True)


def test_every_operation_with_a_dry_run_has_a_verb(
    foreign: Foreign, connection: Connection
) -> None:
    verbs = [partial(_of_one, verb) for verb in VERBS.values()]
    assert operations_called(foreign, connection, verbs) == set(WITH_DRY_RUN.values())


def _arrange(raw: redis.Redis, verb: str, count: int, seed: int) -> list[bytes]:
    """A queue of this many items, at most 400 of them with random facts."""
    keys = QueueKeys(QUEUE)
    raw.flushall(asynchronous=False)
    ids = [b"id-%d" % number for number in range(min(count, 400))]
    # A lease stops at the first data of another type.
    make_broken(raw, keys, ids, seed, wrong_types=verb != "lease")
    ids += pad(raw, keys, count - len(ids))
    make_idle(raw, 1000)
    return ids


def _cases() -> Iterator[Any]:
    for name in VERBS:
        for seed in range(1, _SEEDS + 1):
            count = (25, 400)[seed % 2]
            yield pytest.param(name, count, seed, id=f"{name}-{count}-{seed}")


def _assert_the_run_does_what_the_dry_run_says(
    queue: WorkQueue, raw: redis.Redis, verb: Verb, ids: list[bytes]
) -> None:
    raw.execute_command("CLIENT", "NO-TOUCH", "ON")
    before = contents(raw)
    foreseen = verb(queue, ids, True)
    after = contents(raw)
    assert after.keys() == before.keys()
    for key, (value, expires_ms, idle_s) in before.items():
        assert after[key][:2] == (value, expires_ms), key
        assert after[key][2] >= idle_s, f"{key!r} was used"
    assert verb(queue, ids, False) == foreseen


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize(("name", "count", "seed"), list(_cases()))
def test_a_dry_run_says_what_the_run_does_and_changes_nothing(
    queue: WorkQueue, raw: redis.Redis, name: str, count: int, seed: int
) -> None:
    ids = _arrange(raw, name, count, seed)
    _assert_the_run_does_what_the_dry_run_says(queue, raw, VERBS[name], ids)


def _arrange_by_hand(foreign: Foreign, verb: str) -> list[bytes]:
    """One ID in each state that has a name, and a few more."""
    # A lease stops at the first data of another type.
    cases = {
        name: case for name, case in ITEM_CASES.items() if verb != "lease" or "hash" not in name
    }
    for name, case in cases.items():
        case.make(foreign, name.encode())
    foreign.waiting(b"", b"\x00\xff")
    foreign.leased(b"mine", holder=HOLDER)
    foreign.leased(b"mine by 0.2", holder=HOLDER, generations="new")
    foreign.abandoned(b"mine")
    for make in (foreign.buried, lambda item_id: foreign.delayed(item_id, 1)):
        for claimed in (b"claimed", b"buried and due"):
            make(claimed)
    foreign.lease(b"claimed", holder=b"rwq-clean:x")
    return [
        *(name.encode() for name in cases),
        b"",
        b"\x00\xff",
        b"mine",
        b"claimed",
        b"never",
    ]


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("name", VERBS)
def test_a_dry_run_of_one_of_each_kind_says_what_the_run_does(
    queue: WorkQueue, raw: redis.Redis, foreign: Foreign, name: str
) -> None:
    ids = _arrange_by_hand(foreign, name)
    make_idle(raw, 1000)
    _assert_the_run_does_what_the_dry_run_says(queue, raw, VERBS[name], ids)


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("name", VERBS)
def test_a_dry_run_of_thousands_of_items_says_what_the_run_does(
    queue: WorkQueue, raw: redis.Redis, name: str
) -> None:
    ids = _arrange(raw, name, _THOUSANDS, 3)
    _assert_the_run_does_what_the_dry_run_says(queue, raw, VERBS[name], ids)
