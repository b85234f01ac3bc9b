"""A verdict depends on the facts about an ID, not on how many others there are or are named."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, Selection, Source, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.choosing import choose as choose_items
from rwq_cli.core.inspect.report import inspect_items
from rwq_cli.core.inspect.results import read_result_keys
from rwq_cli.core.items.add import Due, NewItem
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.export import export as export_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.items.purge import count_items, purge as purge_queue
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.restore import Line, OnConflict, restore as restore_items
from rwq_cli.core.items.results import ResultOptions
from rwq_cli.core.items.schedule import (
    bury as bury_items,
    kick as kick_items,
    promote as promote_items,
    release as release_items,
)
from rwq_cli.core.items.set_data import edit_items, read_item
from rwq_cli.core.items.touch import touch as touch_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import State
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.state.expected import Expected
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.broken_queues import make_broken, pad, traces
from tests.conftest import Foreign
from tests.core.test_dry_runs import (
    VERBS as DRY_VERBS,
    WITH_DRY_RUN,
    Verb as DryVerb,
    operations_called,
)
from tests.long import usual

IDS = [b"id-%d" % number for number in range(25)]
_EVERYWHERE = Source(main=True, processing=True, delayed=True, buried=True, deep=True)

# What a verb says of each ID, in words. A clean or the doctor says nothing of what it leaves alone.
Verdicts = dict[bytes, Any]
Verb = Callable[[WorkQueue, Sequence[bytes]], Verdicts]


def _outcomes(operation: Callable[..., Any], **options: Any) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
        return {
            outcome.item_id: (outcome.status.value, outcome.holder)
            for outcome in operation(queue, list(ids), **options)
        }

    return verb


def _actions(name: str, **options: Any) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
        found: Verdicts = {}
        for action in getattr(queue, name)(**options):
            told = (action.action.value, action.state.value, action.where)
            found.setdefault(action.item_id, set()).add(told)
        return found

    return verb


def _diagnose(fix: bool) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
        found: Verdicts = {}
        for finding in diagnose(queue, fix=fix, all_ids=True).findings:
            for item_id in () if finding.of_keys else finding.examples:
                found.setdefault(item_id, set()).add(finding.code.value)
        return found

    return verb


def _states(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    return {report.facts.item_id: report.facts.state for report in inspect_items(queue, list(ids))}


def _lease_all(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    """The place of each among those that are leased."""
    leased = [item.item_id for item in queue.lease_many(1_000_000) if item.item_id in IDS]
    return {item_id: at for at, item_id in enumerate(leased)}


def _lease_by_id(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    return {
        attempt.item.item_id: (attempt.is_leased, None if attempt.is_leased else attempt.item.state)
        for attempt in lease_ids(queue, _own(ids))
    }


def _own(ids: Sequence[bytes]) -> list[bytes]:
    """For verbs that look for each ID in the whole lists."""
    return [item_id for item_id in ids if item_id in IDS]


def _add(due: Due | None = None, *, unique: bool = False) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
        items = [NewItem(item_id, b"new", due) for item_id in ids]
        return {o.item_id: o.status for o in queue.add_many(items, unique=unique)}

    return verb


def _promote(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    return {outcome.item_id: outcome.status for batch in promote_items(queue) for outcome in batch}


def _set_data(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    found: Verdicts = {}
    for item_id in _own(ids):
        found[item_id] = "wrong type"
        with suppress(WrongType):
            item = read_item(queue, item_id)
            found[item_id] = item and next(edit_items(queue, [(item, b"new")])).status
    return found


def _purge(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    return {outcome.item_id: outcome.status for outcome in purge_queue(queue, NoJournal())}


def _snapshots(queue: WorkQueue) -> Iterator[ItemSnapshot]:
    for batch in export_items(queue).batches():
        yield from batch


def _export(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    return {
        item.item_id: (
            *(item.data, item.state, item.place, item.lease and item.lease.holder),
            # The times themselves depend on when the queue was made.
            *(item.due_ms is None, item.buried_ms is None, item.reason, item.returns),
        )
        for item in _snapshots(queue)
    }


def _export_and_restore(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    """Into the queue, from which everything was purged."""
    items = list(_snapshots(queue))
    list(purge_queue(queue, NoJournal()))
    outcomes = restore_items(queue, (Line(number, item) for number, item in enumerate(items, 2)))
    return {outcome.item_id: outcome.status for outcome in outcomes}


def _restore(on_conflict: OnConflict) -> Verb:
    """Of each ID the data that it may have, or other data."""

    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
        lines = [
            Line(
                number,
                ItemSnapshot(
                    item_id,
                    b"data of " + item_id if item_id[-1] % 2 else b"other",
                    State.WAITING,
                    Place.MAIN,
                ),
            )
            for number, item_id in enumerate(ids, 2)
        ]
        return {o.item_id: o.status for o in restore_items(queue, lines, on_conflict=on_conflict)}

    return verb


def _undo(undone: DryVerb) -> Verb:
    """What the run of a verb of test_dry_runs.py says of each ID."""

    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
        return dict(undone(queue, list(ids), False))

    return verb


def _listing(listed: Callable[[WorkQueue], Iterable[Any]]) -> Verb:
    """The states that a listing shows of each ID, in the order in which it shows them."""

    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
        found: Verdicts = {}
        for item in listed(queue):
            found.setdefault(item.item_id, []).append(item.state)
        return found

    return verb


def _chosen(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
    """By which states each ID is chosen."""
    found: Verdicts = {}
    for state in (None, *(state for state in State if state.is_item)):
        states = None if state is None else frozenset({state})
        for item_id in choose_items(queue, Selection(states=states)).ids:
            assert isinstance(item_id, bytes)
            found.setdefault(item_id, []).append(state)
    return found


def _results(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    batches = read_result_keys(queue, ids)
    found = ((each.item_id, each.result) for batch in batches for each in batch)
    return {item_id: result and result.status for item_id, result in found}


_UNDONE = ("an import", "a set", "a move")
VERBS: dict[str, Verb] = {
    "states": _states,
    "deep listing": _listing(lambda queue: queue.items(_EVERYWHERE, bare=True)),
    "leases": _listing(lambda queue: queue.leases(bare=True)),
    "choice": _chosen,
    "results": _results,
    "export": _export,
    "complete": _outcomes(complete_items),
    "complete by owner": _outcomes(complete_items, owner=b"them"),
    "complete with a result": _outcomes(complete_items, result_options=ResultOptions(b"result")),
    "add": _add(),
    "add unique": _add(unique=True),
    "add later": _add(Due(60_000, from_now=True)),
    "complete what waits": _outcomes(
        complete_items, expected=Expected(states=frozenset({State.WAITING}))
    ),
    "touch": _outcomes(touch_items),
    "release": _outcomes(release_items),
    "release by force": _outcomes(release_items, force=True),
    "release one's own": _outcomes(release_items, own_only=True),
    "release to the front": _outcomes(release_items, front=True),
    "release later": _outcomes(release_items, delay_s=1000),
    "bury": _outcomes(bury_items),
    "bury with a reason": _outcomes(bury_items, reason=b"because"),
    "bury by force": _outcomes(bury_items, force=True, reason=b"because"),
    "kick": _outcomes(kick_items),
    "remove": _outcomes(remove_items, journal=NoJournal()),
    "move": _outcomes(move_items, to=b"other", journal=NoJournal()),
    "move by force": _outcomes(move_items, to=b"other", journal=NoJournal(), force=True),
    "promotion": _promote,
    "set data": _set_data,
    "purge": _purge,
    "restore": _restore(OnConflict.FAIL),
    "restore and replace": _restore(OnConflict.REPLACE),
    "export and restore": _export_and_restore,
    **{f"undo of {what}": _undo(DRY_VERBS[f"undo of {what}"]) for what in _UNDONE},
    "lease": _lease_all,
    "lease by ID": _lease_by_id,
    "light clean": _actions("light_clean"),
    "light clean that buries": _actions("light_clean", bury_after=2),
    "deep clean": _actions("deep_clean"),
    "deep clean that buries": _actions("deep_clean", bury_after=2),
    "diagnosis": _diagnose(fix=False),
    "doctor's repairs": _diagnose(fix=True),
}
# What takes no IDs, or only some of those that are named.
OF_ALL = {
    *("deep listing", "leases", "choice", "export"),
    *("promotion", "set data", "purge", "export and restore", "lease", "lease by ID"),
    *("light clean", "light clean that buries", "deep clean", "deep clean that buries"),
    *("diagnosis", "doctor's repairs"),
}
OF_IDS = [name for name in VERBS if name not in OF_ALL]
_THOUSANDS = usual(5_000, long=50_000)
_SEEDS = usual(2, long=100)


def test_every_operation_with_a_dry_run_has_a_verb(
    foreign: Foreign, connection: Connection
) -> None:
    verbs = [partial(verb, ids=IDS[:1]) for verb in VERBS.values()]
    assert operations_called(foreign, connection, verbs) == set(WITH_DRY_RUN.values())


Pad = Callable[[redis.Redis, QueueKeys, int, int], list[bytes]]


def _pad_broken(
    raw: redis.Redis, keys: QueueKeys, count: int, first: int = 1, *, wrong_types: bool = True
) -> list[bytes]:
    """Like `pad`, with random facts: a clean and the doctor have them in their batches, too."""
    ids = [b"pad-%d" % number for number in range(first, first + count)]
    make_broken(raw, keys, ids, first, wrong_types=wrong_types)
    return ids


def _run(
    name: str,
    queue: WorkQueue,
    raw: redis.Redis,
    seed: int,
    padding: int,
    names_all: bool,
    pad: Pad = pad,
) -> tuple[Verdicts, dict[bytes, Any]]:
    """The verdicts on the IDs, and what is left of them, in a queue with this many other items."""
    keys = QueueKeys(queue.name)
    raw.flushall(asynchronous=False)
    others = pad(raw, keys, padding // 2, 1)
    # A lease ends at the first data of another type, and takes nothing in that call.
    make_broken(raw, keys, IDS, seed, wrong_types=name != "lease")
    others += pad(raw, keys, padding - padding // 2, padding // 2 + 1)
    said = VERBS[name](queue, [*IDS, *others] if names_all else IDS)
    verdicts = {item_id: said[item_id] for item_id in IDS if item_id in said}
    return verdicts, traces(raw, keys, IDS)


def _cases() -> Iterator[Any]:
    for name in VERBS:
        for seed in range(1, _SEEDS + 1):
            yield pytest.param(name, seed, id=f"{name}-{seed}")


@pytest.mark.parametrize(("name", "seed"), list(_cases()))
def test_a_verdict_does_not_depend_on_others(
    queue: WorkQueue, raw: redis.Redis, name: str, seed: int
) -> None:
    alone = _run(name, queue, raw, seed, 0, names_all=False)
    pad_broken = partial(_pad_broken, wrong_types=name != "lease")
    others = ((30, pad), (31, pad), (600, pad), (31, pad_broken), (600, pad_broken))
    for padding, like in others:
        for names_all in (False,) if name in OF_ALL else (False, True):
            found = _run(name, queue, raw, seed, padding, names_all, like)
            assert found == alone, (padding, like, names_all)


@pytest.mark.parametrize("name", VERBS)
def test_a_verdict_is_the_same_among_thousands(
    queue: WorkQueue, raw: redis.Redis, name: str
) -> None:
    alone = _run(name, queue, raw, 7, 0, names_all=False)
    assert _run(name, queue, raw, 7, _THOUSANDS, names_all=True) == alone


@pytest.mark.parametrize("name", [*OF_IDS, "lease by ID", "set data"])
def test_a_verdict_is_the_same_for_one_id_as_for_all(
    queue: WorkQueue, raw: redis.Redis, name: str
) -> None:
    keys = QueueKeys(queue.name)
    together, left = _run(name, queue, raw, 5, 600, names_all=False)
    raw.flushall(asynchronous=False)
    pad(raw, keys, 600)
    make_broken(raw, keys, IDS, 5)
    one_by_one: Verdicts = {}
    for item_id in IDS:
        one_by_one |= VERBS[name](queue, [item_id])
    assert one_by_one == together
    assert traces(raw, keys, IDS) == left


# What a deep count counts, and not what it measures.
_COUNTED = (
    *("waiting", "processing", "delayed", "buried", "returned", "leased", "held", "abandoned"),
    *("due", "orphaned", "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
    *("returns", "results"),
)


@pytest.mark.parametrize("padding", [30, 31, 600, _THOUSANDS])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_counts_of_others_are_added(
    queue: WorkQueue, raw: redis.Redis, seed: int, padding: int
) -> None:
    keys = QueueKeys(queue.name)

    def counted() -> dict[str, int]:
        counts = queue.counts(deep=True)
        found = {name: getattr(counts, name) for name in _COUNTED}
        return {**found, "items": count_items(queue)}

    make_broken(raw, keys, IDS, seed)
    alone = counted()
    pad(raw, keys, padding)
    together = counted()
    raw.flushall(asynchronous=False)
    pad(raw, keys, padding)
    others = counted()
    assert together == {name: alone[name] + number for name, number in others.items()}
