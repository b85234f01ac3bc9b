"""Two actors on one queue: one is held at each of its replies while the other acts, and then goes
on or is killed. After each, the books: see `tests.live.two_actors`.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, product
from threading import Event

import pytest

from rwq_cli.core import Server, State, connect
from rwq_cli.core.items.move import move
from tests.clusters import PrivateCluster
from tests.live.two_actors import (
    FAR,
    IDS,
    JOBS,
    MOVING_FAR,
    OTHER,
    VERBS,
    WAITING,
    Run,
    Stage,
    check,
)
from tests.long import usual
from tests.servers import running_server
from tests.stepping import Gate, HeldActor, InstantClock
from tests.support import Journal


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
    for queue in queues.by_place().values():
        queue.connection.on_wait = waits.append
    for outcome in VERBS[second].act(queues):
        run.answers.append((second, outcome))
    held.go_on()
    if held.error is not None:
        raise AssertionError(str(run)) from held.error
    return run


def interleave_all(stage: Stage, first: str, second: str) -> Counter[str]:
    """Hold the first verb at each of its replies, then kill it there; count the interleavings."""
    counts: Counter[str] = Counter()
    for is_kill in (False, True):
        for stop_at in count(1):
            run = interleave(stage, first, second, stop_at, is_kill=is_kill)
            if run is None:
                break
            check(stage, run)
            counts["killed" if is_kill else "held"] += 1
    # Else the gate is passed by.
    assert counts["held"] == counts["killed"] > 0
    return counts


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Two servers."""
    with ExitStack() as stack:
        here, there = (stack.enter_context(running_server()) for _ in range(2))
        raw, far_raw = (stack.enter_context(server.client()) for server in (here, there))
        places = {JOBS: (b"jobs", raw), OTHER: (b"other", raw), FAR: (b"jobs", far_raw)}
        yield Stage(places, *(stack.enter_context(connect(Server(s.url))) for s in (here, there)))


@pytest.fixture(scope="module")
def cluster_stage(shared_cluster: PrivateCluster) -> Iterator[Stage]:
    """Two nodes of a cluster."""
    shared_cluster.separate("{jobs}", "{far}")
    with ExitStack() as stack:
        raw, far_raw = (
            stack.enter_context(shared_cluster.client(tag)) for tag in ("{jobs}", "{far}")
        )
        places = {JOBS: (b"{jobs}", raw), OTHER: (b"{jobs}2", raw), FAR: (b"{far}", far_raw)}
        connection = stack.enter_context(connect(Server(shared_cluster.url)))
        yield Stage(places, connection, connection)


_SOME = [
    *(("mv far", second) for second in ("mv far", "rm", "complete", "work")),
    ("mv far --force", "edit"),
    ("mv back", "purge"),
    *(
        pytest.param(first, second, marks=pytest.mark.ci)
        for first, second in (
            *(("mv far", second) for second in ("mv back", "release")),
            *(("mv far --force", second) for second in ("work", "complete")),
            *((verb, "work") for verb in ("undo rm", "undo mv", "undo mv far", "add")),
        )
    ),
]
_ON_A_CLUSTER = [
    *(("mv far", second) for second in ("mv far", "rm")),
    ("undo mv far", "mv far"),
]


@pytest.mark.parametrize(("first", "second"), _SOME)
def test_some(stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(stage, first, second)))


@pytest.mark.ci
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_beside_itself(stage: Stage, verb: str) -> None:
    print(dict(interleave_all(stage, verb, verb)))


@pytest.mark.ci
@pytest.mark.parametrize(("first", "second"), _ON_A_CLUSTER)
def test_some_on_a_cluster(cluster_stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(cluster_stage, first, second)))


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
    books = stage.read_books()
    for item_id in WAITING:
        assert books.get(item_id) == {FAR: State.WAITING}, (str(run), item_id, books.get(item_id))
    return True, not other.has_ended


@pytest.mark.parametrize("first", ["mv far", pytest.param("mv far --force", marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    "kills",
    [
        (False, False),
        *(pytest.param((is_killed, True), marks=pytest.mark.ci) for is_killed in (False, True)),
    ],
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
    assert interleavings > 0
    print({"interleavings": interleavings})


_PAIRS = list(product(VERBS, VERBS))
_PAIRS_ON_A_CLUSTER = list(product(sorted(MOVING_FAR), VERBS))


# CI has a fifth of them, of which each verb is the first and the second actor; --long has all.
@pytest.mark.ci
@pytest.mark.parametrize(("first", "second"), _PAIRS[:: usual(5, long=1)])
def test_each_verb_beside_each(stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(stage, first, second)))


@pytest.mark.ci
@pytest.mark.parametrize(("first", "second"), _PAIRS_ON_A_CLUSTER[:: usual(5, long=1)])
def test_each_move_beside_each_on_a_cluster(cluster_stage: Stage, first: str, second: str) -> None:
    print(dict(interleave_all(cluster_stage, first, second)))
