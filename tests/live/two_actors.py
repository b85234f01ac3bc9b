"""The verbs of two actors on one queue, its neighbours, and the books: every item once, in a state
that the answers explain; every result where its item was completed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from redis import Redis

from rwq_cli.core import Connection, NewItem, Outcome, State, Status, WorkQueue
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.items.complete import ResultOptions, complete, remove
from rwq_cli.core.items.move import move, move_back
from rwq_cli.core.items.purge import purge
from rwq_cli.core.items.restore import OnConflict, forget_marks, restore
from rwq_cli.core.state.snapshots import ItemSnapshot, Place
from tests.conftest import Foreign
from tests.stepping import Gate, InstantClock, gated
from tests.support import Journal, lines_of

# A queue, one that a script reaches together with it, and one that none does.
JOBS, OTHER, FAR = "jobs", "other", "far"
WAITING = (b"w1", b"w2", b"w3")
# By its ID, the queue and the state of an item at first; None if there is none.
AT_FIRST: dict[bytes, tuple[str, State] | None] = {
    **dict.fromkeys(WAITING, (JOBS, State.WAITING)),
    b"leased": (JOBS, State.LEASED),
    b"abandoned": (JOBS, State.ABANDONED),
    b"orphaned": (JOBS, State.ORPHANED),
    b"due": (JOBS, State.DUE),
    b"buried": (JOBS, State.BURIED),
    b"moved": (OTHER, State.WAITING),
    b"moved far": (FAR, State.WAITING),
    b"removed": None,
    b"new": None,
}
IDS = tuple(AT_FIRST)
# The ID of a result; no item has it.
DONE = b"done"
_BROKEN = {State.ABANDONED, State.ORPHANED, State.DUPLICATED, State.GHOST, State.UNLISTED}
_ENDED = (Status.COMPLETED, Status.REMOVED)
_ADDED = (Status.IMPORTED, Status.ADDED)


@dataclass
class Queues:
    jobs: WorkQueue
    other: WorkQueue
    far: WorkQueue

    def by_place(self) -> dict[str, WorkQueue]:
        return {JOBS: self.jobs, OTHER: self.other, FAR: self.far}


Act = Callable[[Queues], Iterable[Outcome]]


def _work(queues: Queues, of: Callable[[Queues], WorkQueue]) -> Iterator[Outcome]:
    queue = of(queues)
    for _ in range(2):
        for item in queue.lease_many(1):
            yield Outcome(item.item_id, Status.TOUCHED)
            yield queue.complete(item.item_id, owner=queue.holder)[0]


def _clean(queues: Queues, of: Callable[[Queues], WorkQueue], *, deep: bool) -> Iterator[Outcome]:
    queue = of(queues)
    for action in (queue.deep_clean if deep else queue.light_clean)(grace_s=1):
        yield Outcome(action.item_id, Status.RETURNED)


def _doctor(queues: Queues) -> Iterator[Outcome]:
    queues.jobs.diagnose(fix=True)
    return iter(())


def _snapshots(*ids: bytes) -> Iterator[ItemSnapshot]:
    return (ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in ids)


def _import(queues: Queues) -> Iterable[Outcome]:
    lines = lines_of(_snapshots(*IDS[:8]))
    return restore(queues.jobs, lines, on_conflict=OnConflict.REPLACE, journal=Journal())


def _undo(queues: Queues) -> Iterator[Outcome]:
    """Undo a removal, as `undo.run` does it: of an item and a result, and of one that is back."""
    result = Result(b"removed result", ResultStatus.COMPLETED, 1, None, b"data")
    lines = lines_of([*_snapshots(b"removed", b"w1"), result])
    yield from restore(queues.jobs, lines, file_id=b"rm")
    forget_marks(queues.jobs, b"rm")


def _undo_move(
    queues: Queues, item_id: bytes, of: Callable[[Queues], WorkQueue]
) -> Iterator[Outcome]:
    lines = lines_of(_snapshots(item_id))
    yield from move_back(queues.jobs, lines, of(queues), file_id=item_id)
    forget_marks(queues.jobs, item_id)


def _add(queues: Queues) -> Iterable[Outcome]:
    return queues.jobs.add_many(NewItem(i, b"data of " + i) for i in (b"w1", b"new"))


def _edit(queues: Queues) -> Iterable[Outcome]:
    return queues.jobs.edit_many((i, b"data of " + i, b"new data of " + i) for i in IDS)


def _move_far(queues: Queues, *, force: bool = False) -> Iterable[Outcome]:
    return move(queues.jobs, IDS, queues.far, Journal(), force=force)


def _complete(queues: Queues, result: ResultOptions | None = None) -> Iterable[Outcome]:
    return complete(queues.jobs, IDS, result_options=result, journal=Journal())


@dataclass(frozen=True)
class Verb:
    act: Act
    # Where its items are after it: by the status of its answer, a queue and a state.
    brings: Mapping[Status, tuple[str, State]]
    # Where an item may be after it whatever it answers: it was promoted, repaired or put back.
    may_bring: tuple[tuple[str, State], ...] = ()


_JOBS, _FAR = attrgetter("jobs"), attrgetter("far")
_TO_MAIN = (JOBS, State.WAITING)
_MOVED = Status.MOVED, Status.FINISHED
_TO_FAR = dict.fromkeys(_MOVED, (FAR, State.WAITING))
_BACK = dict.fromkeys(_MOVED, _TO_MAIN)
VERBS = {
    "work": Verb(partial(_work, of=_JOBS), {Status.TOUCHED: (JOBS, State.LEASED)}, (_TO_MAIN,)),
    "complete": Verb(_complete, {}),
    "complete --result": Verb(partial(_complete, result=ResultOptions(b"result")), {}),
    "rm": Verb(lambda queues: remove(queues.jobs, IDS, Journal()), {}),
    "release": Verb(lambda queues: queues.jobs.release_many(IDS), {Status.RELEASED: _TO_MAIN}),
    "release --delay": Verb(
        lambda queues: queues.jobs.release_many(IDS, delay_s=900),
        {Status.DELAYED: (JOBS, State.DELAYED)},
    ),
    "bury": Verb(lambda queues: queues.jobs.bury_many(IDS), {Status.BURIED: (JOBS, State.BURIED)}),
    "kick": Verb(lambda queues: queues.jobs.kick_many(IDS), {Status.KICKED: _TO_MAIN}),
    "mv": Verb(
        lambda queues: move(queues.jobs, IDS, queues.other, Journal()),
        {Status.MOVED: (OTHER, State.WAITING)},
    ),
    "mv --force": Verb(
        lambda queues: move(queues.jobs, IDS, queues.other, Journal(), force=True),
        {Status.MOVED: (OTHER, State.WAITING)},
    ),
    "mv far": Verb(_move_far, _TO_FAR, (_TO_MAIN,)),
    "mv far --force": Verb(partial(_move_far, force=True), _TO_FAR, (_TO_MAIN,)),
    "mv back": Verb(lambda queues: move(queues.far, IDS, queues.jobs, Journal()), _BACK),
    "clean light": Verb(partial(_clean, of=_JOBS, deep=False), {Status.RETURNED: _TO_MAIN}),
    "clean deep": Verb(partial(_clean, of=_JOBS, deep=True), {Status.RETURNED: _TO_MAIN}),
    "doctor --fix": Verb(_doctor, {}, (_TO_MAIN,)),
    "purge": Verb(lambda queues: purge(queues.jobs, Journal()), {}),
    "import": Verb(_import, {Status.IMPORTED: _TO_MAIN}, (_TO_MAIN,)),
    "undo rm": Verb(_undo, {Status.IMPORTED: _TO_MAIN}),
    "undo mv": Verb(partial(_undo_move, item_id=b"moved", of=attrgetter("other")), _BACK),
    "undo mv far": Verb(partial(_undo_move, item_id=b"moved far", of=_FAR), _BACK),
    "add": Verb(_add, {Status.ADDED: _TO_MAIN}),
    "edit": Verb(_edit, {}),
    # At the destination of a move.
    "work there": Verb(partial(_work, of=_FAR), {Status.TOUCHED: (FAR, State.LEASED)}),
    "kick there": Verb(lambda queues: queues.far.kick_many(IDS), {}),
    "clean there": Verb(partial(_clean, of=_FAR, deep=True), {}),
}
_ENDING = {"complete", "complete --result", "rm", "work", "purge", "work there"}
# They add what may be elsewhere, or what another has removed.
_ADDING = {"import", "undo rm", "add"}
MOVING_FAR = {"mv far", "mv far --force", "mv back", "undo mv far"}


class Stage:
    """The queues, set anew for each pair of actors.

    Args:
        places: By its place, the name of a queue and a plain client of its server.
        here: The connection of the queue and its neighbour; `there` is that of the far one, perhaps
            the same.
    """

    def __init__(
        self, places: Mapping[str, tuple[bytes, Redis]], here: Connection, there: Connection
    ) -> None:
        self._places, self._connections = places, (here, there)
        self.plain = self._queues(self._connections, InstantClock(), b"us")

    def _queues(
        self, connections: tuple[Connection, Connection], clock: InstantClock, holder: bytes
    ) -> Queues:
        here, there = connections
        by_place = {JOBS: here, OTHER: here, FAR: there}
        return Queues(
            *(
                WorkQueue(by_place[place], name, holder=holder, clock=clock)
                for place, (name, _) in self._places.items()
            )
        )

    def set_up(self) -> None:
        for _, raw in self._places.values():
            raw.flushall()
        foreign, other, far = (Foreign(raw, name) for name, raw in self._places.values())
        foreign.waiting(*WAITING)
        foreign.leased(b"leased")
        foreign.abandoned(b"abandoned")
        foreign.data(b"orphaned")
        foreign.delayed(b"due", 1)
        foreign.buried(b"buried")
        other.waiting(b"moved")
        far.waiting(b"moved far")
        foreign.raw.hset(
            foreign.keys.result(DONE), mapping={"status": "completed", "completed_ms": 1}
        )

    def end_locks(self) -> None:
        """As if their holders had been dead for long."""
        for name, raw in self._places.values():
            raw.delete(name + b":clean-lock", name + b":move-lock")

    def actor(self, gate: Gate, clock: InstantClock, holder: bytes) -> Queues:
        here, there = self._connections
        gated_here = gated(here, gate)
        gated_there = gated_here if here is there else gated(there, gate)
        return self._queues((gated_here, gated_there), clock, holder)

    def read_books(self) -> dict[bytes, dict[str, State]]:
        """By ID, the places and states of each item that is anywhere."""
        states: dict[bytes, dict[str, State]] = {}
        queues = self.plain.by_place()
        for place, (name, raw) in self._places.items():
            keys = queues[place].keys
            entries = [*raw.lrange(keys.main, 0, -1), *raw.lrange(keys.processing, 0, -1)]
            entries += [*raw.zrange(keys.delayed, 0, -1), *raw.zrange(keys.buried, 0, -1)]
            data_keys = raw.keys(name.replace(b"{", b"\\{") + b":item:*")
            for item_id in {*entries, *(key.partition(b":item:")[2] for key in data_keys)}:
                states.setdefault(item_id, {})[place] = queues[place].state(item_id)
        return states

    def read_results(self) -> dict[str, set[bytes]]:
        """By place, the IDs that have a result."""
        return {
            place: {key.partition(b":result:")[2] for key in raw.keys(name + b":result:*")}
            for place, (name, raw) in self._places.items()
        }


@dataclass
class Run:
    """One interleaving: what was answered, and by whom."""

    first: str
    second: str
    stop_at: int
    is_kill: bool
    answers: list[tuple[str, Outcome]]

    def __str__(self) -> str:
        how = "killed" if self.is_kill else "held"
        return f"{self.first} {how} at reply {self.stop_at}, {self.second}"

    @property
    def verbs(self) -> set[str]:
        return {self.first, self.second}

    def statuses_of(self, item_id: bytes) -> list[tuple[str, Status]]:
        return [(verb, o.status) for verb, o in self.answers if o.item_id == item_id]


def check(stage: Stage, run: Run) -> None:
    """Check the books, first as they are, then after what was cut has been finished."""
    books = stage.read_books()
    for item_id, places in books.items():
        at_first = AT_FIRST.get(item_id)
        broken = [state for state in places.values() if state in _BROKEN]
        assert broken in ([], [at_first and at_first[1]]), (str(run), item_id, places)
        leasable = [state for state in places.values() if state in (State.WAITING, State.LEASED)]
        # What was moved away is added once more.
        most = 1 + bool(_ADDING & run.verbs)
        assert len(leasable) <= most, (str(run), item_id, places)
    if run.is_kill:
        for verb in run.verbs & MOVING_FAR:
            ends = stage.plain.jobs, stage.plain.far
            source, to = ends if verb.startswith("mv far") else ends[::-1]
            run.answers += [(verb, outcome) for outcome in move(source, [], to, Journal())]
        books = stage.read_books()
    for item_id in IDS:
        _check_item(run, item_id, books.get(item_id, {}))
    _check_results(run, stage.read_results())


def _check_item(run: Run, item_id: bytes, places: dict[str, State]) -> None:
    statuses, at_first = run.statuses_of(item_id), AT_FIRST[item_id]
    story = str(run), item_id, places, statuses
    ended = sum(status in _ENDED for _, status in statuses)
    added = sum(status in _ADDED for _, status in statuses)
    count = (at_first is not None) - ended + added
    counts = {count}
    if run.is_kill:
        # What it did last, it had no time to say.
        counts |= {count - 1} if run.first in _ENDING else set()
        counts |= {count + 1} if run.first in _ADDING else set()
    assert len(places) in counts, story
    brought = [
        VERBS[verb].brings[status] for verb, status in statuses if status in VERBS[verb].brings
    ]
    allowed = {at_first} if run.is_kill or not brought else set()
    allowed.update(brought, VERBS[run.first].may_bring, VERBS[run.second].may_bring)
    if run.is_kill:
        allowed.update(VERBS[run.first].brings.values())
    assert set(places.items()) <= allowed, story


def _check_results(run: Run, results: dict[str, set[bytes]]) -> None:
    """A result is where its item was completed, and stays until a purge."""
    story = str(run), results
    kept = {
        outcome.item_id
        for verb, outcome in run.answers
        if verb == "complete --result" and outcome.status is Status.COMPLETED
    }
    possible = {DONE, *kept}
    possible |= {b"removed result"} if "undo rm" in run.verbs else set()
    possible |= set(IDS) if run.is_kill and run.first == "complete --result" else set()
    assert results[JOBS] <= possible, story
    assert (results[OTHER], results[FAR]) == (set(), set()), story
    if "purge" not in run.verbs:
        # An ID that was completed and added anew has had the earlier result.
        assert {DONE} | (kept if not run.verbs & _ADDING else set()) <= results[JOBS], story
