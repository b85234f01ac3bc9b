"""Two actors on one queue: one is held at each of its replies while the other acts, and then goes
on or is killed. After each, the books: every item once, in a state that the answers explain.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from threading import Event

import pytest
from redis import Redis

from rwq_cli.core import Connection, Outcome, Server, State, Status, WorkQueue, connect
from rwq_cli.core.items.complete import complete, remove
from rwq_cli.core.items.move import move
from rwq_cli.core.items.purge import purge
from rwq_cli.core.items.restore import OnConflict, restore
from rwq_cli.core.state.snapshots import ItemSnapshot, Place
from tests.conftest import Foreign
from tests.servers import PrivateServer, running_server
from tests.stepping import Gate, GatedConnection, HeldActor, InstantClock
from tests.support import Journal, lines_of

WAITING = (b"w1", b"w2", b"w3")
# By its ID, the state of an item at first.
AT_FIRST = {
    **dict.fromkeys(WAITING, State.WAITING),
    b"leased": State.LEASED,
    b"abandoned": State.ABANDONED,
    b"orphaned": State.ORPHANED,
    b"due": State.DUE,
    b"buried": State.BURIED,
}
IDS = tuple(AT_FIRST)
_BROKEN = {State.ABANDONED, State.ORPHANED, State.DUPLICATED, State.GHOST, State.UNLISTED}
# The end of a queue's name, and the state, that follow from an answer.
JOBS, OTHER, FAR = "jobs", "other", "far"
_ENDED = (Status.COMPLETED, Status.REMOVED)
_RESTORED = (Status.IMPORTED,)


@dataclass
class Queues:
    """The queue, another one that a script reaches together with it, and one of another server."""

    jobs: WorkQueue
    other: WorkQueue
    far: WorkQueue

    def named(self) -> dict[str, WorkQueue]:
        return {JOBS: self.jobs, OTHER: self.other, FAR: self.far}


Answers = Iterable[Outcome]
Act = Callable[[Queues], Answers]


def _working(of: Callable[[Queues], WorkQueue]) -> Act:
    def act(queues: Queues) -> Iterator[Outcome]:
        queue = of(queues)
        for _ in range(2):
            for item in queue.lease_many(1):
                yield Outcome(item.item_id, Status.TOUCHED)
                yield queue.complete(item.item_id, owner=queue.holder)[0]

    return act


def _cleaning(of: Callable[[Queues], WorkQueue], *, deep: bool) -> Act:
    def act(queues: Queues) -> Iterator[Outcome]:
        queue = of(queues)
        for action in (queue.deep_clean if deep else queue.light_clean)(grace_s=1):
            yield Outcome(action.item_id, Status.RETURNED)

    return act


def _doctor(queues: Queues) -> Iterator[Outcome]:
    queues.jobs.diagnose(fix=True)
    return iter(())


def _import(queues: Queues) -> Answers:
    waiting = (ItemSnapshot(i, b"data of " + i, State.WAITING, Place.MAIN) for i in IDS)
    lines = lines_of(waiting)
    return restore(queues.jobs, lines, on_conflict=OnConflict.REPLACE, journal=Journal())


def _edit(queues: Queues) -> Answers:
    return queues.jobs.edit_many((i, b"data of " + i, b"new data of " + i) for i in IDS)


def _move_far(queues: Queues, *, force: bool = False) -> Answers:
    return move(queues.jobs, IDS, queues.far, Journal(), force=force)


@dataclass(frozen=True)
class Verb:
    act: Act
    # Where its items are after it: by the status of its answer, a queue and a state.
    brings: dict[Status, tuple[str, State]]
    # Where an item may be after it whatever it answers: it was promoted, repaired or put back.
    may_bring: tuple[tuple[str, State], ...] = ()


_JOBS, _FAR_QUEUE = attrgetter("jobs"), attrgetter("far")
_TO_MAIN = (JOBS, State.WAITING)
_FAR = dict.fromkeys((Status.MOVED, Status.FINISHED), (FAR, State.WAITING))
VERBS = {
    "work": Verb(_working(_JOBS), {Status.TOUCHED: (JOBS, State.LEASED)}, (_TO_MAIN,)),
    "complete": Verb(lambda queues: complete(queues.jobs, IDS, journal=Journal()), {}),
    "rm": Verb(lambda queues: remove(queues.jobs, IDS, Journal()), {}),
    "release": Verb(lambda queues: queues.jobs.release_many(IDS), {Status.RELEASED: _TO_MAIN}),
    "release --delay": Verb(
        lambda queues: queues.jobs.release_many(IDS, delay_s=900),
        {Status.DELAYED: (JOBS, State.DELAYED)},
    ),
    "bury": Verb(lambda queues: queues.jobs.bury_many(IDS), {Status.BURIED: (JOBS, State.BURIED)}),
    "kick": Verb(lambda queues: queues.jobs.kick_many(IDS), {Status.KICKED: _TO_MAIN}),
    "mv": Verb(
        lambda queues: move(queues.jobs, IDS, b"other", Journal()),
        {Status.MOVED: (OTHER, State.WAITING)},
    ),
    "mv far": Verb(_move_far, _FAR, (_TO_MAIN,)),
    "mv far --force": Verb(lambda queues: _move_far(queues, force=True), _FAR, (_TO_MAIN,)),
    "mv back": Verb(
        lambda queues: move(queues.far, IDS, queues.jobs, Journal()),
        dict.fromkeys((Status.MOVED, Status.FINISHED), _TO_MAIN),
    ),
    "clean light": Verb(_cleaning(_JOBS, deep=False), {Status.RETURNED: _TO_MAIN}),
    "clean deep": Verb(_cleaning(_JOBS, deep=True), {Status.RETURNED: _TO_MAIN}),
    "doctor --fix": Verb(_doctor, {}, (_TO_MAIN,)),
    "purge": Verb(lambda queues: purge(queues.jobs, Journal()), {}),
    "import": Verb(_import, {Status.IMPORTED: _TO_MAIN}, (_TO_MAIN,)),
    "edit": Verb(_edit, {}),
    # At the destination of a move.
    "work there": Verb(_working(_FAR_QUEUE), {Status.TOUCHED: (FAR, State.LEASED)}),
    "kick there": Verb(lambda queues: queues.far.kick_many(IDS), {}),
    "clean there": Verb(_cleaning(_FAR_QUEUE, deep=True), {}),
}
_ENDING = {"complete", "rm", "work", "purge", "work there"}
MOVING_FAR = {"mv far", "mv far --force", "mv back"}


class Stage:
    """Two servers with the queues, set anew for each pair of actors."""

    def __init__(self, here: PrivateServer, there: PrivateServer, stack: ExitStack) -> None:
        self._raw_here, self._raw_there = (
            stack.enter_context(server.client()) for server in (here, there)
        )
        self._here, self._there = (connect(Server(server.url)) for server in (here, there))
        for connection in (self._here, self._there):
            stack.callback(connection.close)
        self.plain = self._queues(self._here, self._there, InstantClock(), b"us")

    @staticmethod
    def _queues(here: Connection, there: Connection, clock: InstantClock, holder: bytes) -> Queues:
        jobs, other = (
            WorkQueue(here, name, holder=holder, clock=clock) for name in (b"jobs", b"other")
        )
        return Queues(jobs, other, WorkQueue(there, b"jobs", holder=holder, clock=clock))

    def set_up(self) -> None:
        for raw in (self._raw_here, self._raw_there):
            raw.flushall()
        foreign = Foreign(self._raw_here)
        foreign.waiting(*WAITING)
        foreign.leased(b"leased")
        foreign.abandoned(b"abandoned")
        foreign.data(b"orphaned")
        foreign.delayed(b"due", 1)
        foreign.buried(b"buried")

    def end_locks(self) -> None:
        """As if their holders had been dead for long."""
        for raw in (self._raw_here, self._raw_there):
            raw.delete("jobs:clean-lock", "jobs:move-lock")

    def actor(self, gate: Gate, clock: InstantClock, holder: bytes) -> Queues:
        here, there = (GatedConnection(inner, gate) for inner in (self._here, self._there))
        return self._queues(here, there, clock, holder)

    def pass_books(self) -> dict[bytes, dict[str, State]]:
        places: dict[bytes, dict[str, State]] = {}
        raws: dict[str, tuple[Redis, str]] = {
            JOBS: (self._raw_here, "jobs"),
            OTHER: (self._raw_here, "other"),
            FAR: (self._raw_there, "jobs"),
        }
        queues = self.plain.named()
        for place, (raw, name) in raws.items():
            entries = [
                *raw.lrange(f"{name}:queue", 0, -1),
                *raw.lrange(f"{name}:processing", 0, -1),
            ]
            entries += [*raw.zrange(f"{name}:delayed", 0, -1), *raw.zrange(f"{name}:buried", 0, -1)]
            ids = {*entries, *(key.partition(b":item:")[2] for key in raw.keys(f"{name}:item:*"))}
            for item_id in ids:
                places.setdefault(item_id, {})[place] = queues[place].state(item_id)
        return places


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


def interleave(stage: Stage, first: str, second: str, stop_at: int, *, is_kill: bool) -> Run | None:
    """Run two verbs, the first one held at a reply; None if it has no such reply."""
    stage.set_up()
    run = Run(first, second, stop_at, is_kill, [])
    gate = Gate(stop_at)
    queues = stage.actor(gate, InstantClock(), b"first")

    def act() -> None:
        for outcome in VERBS[first].act(queues):
            run.answers.append((first, outcome))

    held = HeldActor(gate, act)
    if held.has_ended:
        assert held.error is None, run
        return None
    if is_kill:
        held.kill()
        stage.end_locks()
    waits = []

    def let_go_on() -> None:
        # Only what waits for the first actor needs it.
        if waits:
            held.go_on()

    queues = stage.actor(Gate(), InstantClock(let_go_on), b"second")
    for queue in queues.named().values():
        queue.connection.on_wait = waits.append
    for outcome in VERBS[second].act(queues):
        run.answers.append((second, outcome))
    held.go_on()
    if held.error is not None:
        raise AssertionError(str(run)) from held.error
    return run


def check(stage: Stage, run: Run) -> None:
    """Check the books, first as they are, then after what was cut has been finished."""
    books = stage.pass_books()
    for item_id, places in books.items():
        broken = [state for state in places.values() if state in _BROKEN]
        assert broken in ([], [AT_FIRST.get(item_id)]), (str(run), item_id, places)
        leasable = [state for state in places.values() if state in (State.WAITING, State.LEASED)]
        # An import adds what was moved away once more.
        most = 1 + ("import" in (run.first, run.second))
        assert len(leasable) <= most, (str(run), item_id, places)
    finished: list[tuple[str, Outcome]] = []
    if run.is_kill:
        for verb in {run.first, run.second} & MOVING_FAR:
            source, to = (
                (stage.plain.far, stage.plain.jobs)
                if verb == "mv back"
                else (stage.plain.jobs, stage.plain.far)
            )
            finished += [(verb, outcome) for outcome in move(source, [], to, Journal())]
        books = stage.pass_books()
    answers = run.answers + finished
    for item_id in IDS:
        _check_item(run, item_id, books.get(item_id, {}), answers)


def _check_item(
    run: Run, item_id: bytes, places: dict[str, State], answers: list[tuple[str, Outcome]]
) -> None:
    story = (
        str(run),
        item_id,
        places,
        [(verb, o.status) for verb, o in answers if o.item_id == item_id],
    )
    statuses = [(verb, outcome.status) for verb, outcome in answers if outcome.item_id == item_id]
    ended = sum(status in _ENDED for _, status in statuses)
    added = sum(status in _RESTORED for _, status in statuses)
    expected = {1 - ended + added}
    if run.is_kill:
        # What it did last, it had no time to say.
        expected |= {1 - ended + added - 1} if run.first in _ENDING else set()
        expected |= {1 - ended + added + 1} if run.first == "import" else set()
    assert len(places) in expected, story
    allowed = {(JOBS, AT_FIRST[item_id])}
    acted = [
        VERBS[verb].brings[status] for verb, status in statuses if status in VERBS[verb].brings
    ]
    if acted and not run.is_kill:
        allowed = set()
    allowed.update(acted, VERBS[run.first].may_bring, VERBS[run.second].may_bring)
    if run.is_kill:
        allowed.update(VERBS[run.first].brings.values())
    assert set(places.items()) <= allowed, story


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ExitStack() as stack:
        servers = [stack.enter_context(running_server()) for _ in range(2)]
        yield Stage(servers[0], servers[1], stack)


def interleave_all(stage: Stage, first: str, second: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for is_kill in (False, True):
        for stop_at in count(1):
            run = interleave(stage, first, second, stop_at, is_kill=is_kill)
            if run is None:
                break
            check(stage, run)
            counts["killed" if is_kill else "held"] += 1
    return counts


_SOME = dict.fromkeys(
    [
        *(("mv far", second) for second in VERBS),
        *(("mv far --force", second) for second in ("work", "complete", "edit")),
        *((verb, verb) for verb in VERBS),
    ]
)


@pytest.mark.parametrize(("first", "second"), _SOME)
def test_some(stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(stage, first, second)))


def _moved_in_two_steps(
    stage: Stage, first: str, second: str, stops: tuple[int, int], kills: tuple[bool, bool]
) -> tuple[bool, bool]:
    """Hold two movers, each at a reply of its own, then let them go on or kill them, one after the
    other; and move once more. Returns whether each had so many replies before it waited or ended.
    """
    stage.set_up()
    run = Run(
        f"{first} {'killed' if kills[0] else 'held'} at {stops[0]}", second, stops[1], False, []
    )
    first_is_through = Event()

    gates = Gate(stops[0]), Gate(stops[1])
    waits: list[str] = []

    def start(verb: str, gate: Gate, clock: InstantClock, holder: bytes) -> HeldActor:
        queues = stage.actor(gate, clock, holder)
        queues.jobs.connection.on_wait = waits.append
        act = VERBS[verb].act
        return HeldActor(gate, lambda: run.answers.extend((verb, o) for o in act(queues)))

    held = start(first, gates[0], InstantClock(), b"first")
    if held.has_ended:
        return False, False
    if kills[0]:
        held.kill()
        stage.end_locks()
        first_is_through.set()

    def wait_for_first() -> None:
        if waits:
            gates[1].is_held_or_done.set()
            first_is_through.wait()

    other = start(second, gates[1], InstantClock(wait_for_first), b"second")
    if not kills[0]:
        held.go_on()
        first_is_through.set()
    other.kill() if kills[1] and not other.has_ended else other.go_on()
    stage.end_locks()
    for actor in (held, other):
        assert actor.error is None, (str(run), actor.error)
    run.answers += (("mv far", o) for o in move(stage.plain.jobs, IDS, stage.plain.far, Journal()))
    books = stage.pass_books()
    for item_id in WAITING:
        assert books.get(item_id) == {FAR: State.WAITING}, (str(run), item_id, books.get(item_id))
    return True, not other.has_ended


@pytest.mark.parametrize("first", ["mv far", "mv far --force"])
@pytest.mark.parametrize(
    "kills",
    [(False, False), (False, True), pytest.param((True, True), marks=pytest.mark.ci)],
    ids=["held", "one killed", "both killed"],
)
def test_two_movers_at_every_two_replies(
    stage: Stage, first: str, kills: tuple[bool, bool]
) -> None:
    interleavings = 0
    for first_stop in count(1):
        for second_stop in count(1):
            stops = first_stop, second_stop
            is_first, is_second = _moved_in_two_steps(stage, first, "mv far", stops, kills)
            interleavings += is_first
            if not is_second:
                break
        if not is_first:
            break
    print({"interleavings": interleavings})


@pytest.mark.ci
@pytest.mark.parametrize("second", VERBS)
@pytest.mark.parametrize("first", VERBS)
def test_each_verb_beside_each(stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(stage, first, second)))
