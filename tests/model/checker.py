"""All interleavings of a few programs on two items, command by command, against the guarantees.

A state is the keys and, of each program, the replies that it has got: equal states are explored
once. A program that dies is one that sends nothing more, so deaths need no steps of their own.
Leases end and delayed items come due at any moment.

Two assumptions of the protocol are made: a settling lease outlives the walk of the cleaner that it
keeps away, and 0.1 and later programs may be anywhere between two of their commands for any time.
Once the settling lease has ended, nothing protects what a worker has popped and not yet leased.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from tests.model.keys import IDS, NAMES, Frozen
from tests.model.programs import UPSTREAM, Actor, Cast, Command, next_command
from tests.model.scripts import Identity, Queue, is_session

T = TypeVar("T")
# The numbers that a checker gives to the keys, and to each program with its replies; the latter is
# `_ENDED` for one that sends nothing more.
State = tuple[int, ...]
# Who sent what, and the reply.
Step = tuple[str, Command, Any]
# What is sent, the reply, the number of the keys after it, and that of the program.
Move = tuple[Command, Any, int, int]
# By state, the one before it, and and which part of that moved: 0 is time, for the keys.
Parents = dict[State, tuple[State, int, Move] | None]
_ENDED = -1

# Our scripts that write.
SCRIPTS = frozenset(
    (
        *("add", "lease", "lease_id", "complete", "remove", "touch", "release", "schedule"),
        *("push_scheduled", "repair", "restore_guards", "prune"),
        *("repair_unlisted", "end_job"),
    )
)
# Which of them may bring back a delayed item before its time, or a buried one.
_ON_DEMAND = frozenset(("release", "lease_id", "schedule"))
_READS = frozenset(
    (
        *("get", "exists_data", "exists_lease", "lpos", "lrange", "keys_data"),
        *("states", "look_up", "scheduled", "due", "unguarded", "pushes"),
    )
)


class Violation(AssertionError):
    """A guarantee does not hold."""


class _Numbered(Generic[T]):
    """Values with the numbers that stand for them.

    Attributes:
        values: By number.
    """

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        known = self._numbers.setdefault(value, len(self.values))
        if known == len(self.values):
            self.values.append(value)
        return known


class Checker:
    """Explores casts; what a command does to given keys is computed and checked once.

    Args:
        mutation: See `scripts.MUTATIONS`.

    Attributes:
        effects: By keys and command, the keys after it and its reply.
    """

    def __init__(self, mutation: str = "") -> None:
        self._mutation = mutation
        self.effects: dict[tuple[Frozen, Command], tuple[Frozen, Any]] = {}
        self._recovered: set[Frozen] = set()
        # Numbers are quicker to compare than the keys that they stand for.
        self._keys: _Numbered[Frozen] = _Numbered()
        self._actors: _Numbered[Actor] = _Numbered()
        # The actors that have begun to walk a list, and must not be late.
        self._walkers: set[int] = set()
        self._moves: dict[tuple[int, int], Move] = {}
        self._times: dict[tuple[int, bool], list[Move]] = {}
        self._checked: set[int] = set()

    def explore(self, keys: Frozen, cast: Sequence[Cast], depth: int) -> int:
        """Take every sequence of at most `depth` steps of these programs, breadth first.

        Returns how many states it met.

        Raises:
            Violation: With the shortest sequence that leads to it.
        """
        actors = (self._number_of_actor((program, ())) for program in cast)
        first: State = (self._keys.number(keys), *actors)
        parents: Parents = {first: None}
        level = [first]
        for _ in range(depth):
            following: list[State] = []
            for state in level:
                try:
                    for at, move, reached in self._steps(state):
                        if reached not in parents:
                            parents[reached] = (state, at, move)
                            following.append(reached)
                            if reached[0] not in self._checked:
                                self._check_recovery(self._keys.values[reached[0]])
                                self._checked.add(reached[0])
                except Violation as violation:
                    story = _story(self._way(parents, state))
                    raise Violation(f"{violation}\n{story}") from None
            level = following
            if not level:
                break
        return len(parents)

    def _number_of_actor(self, actor: Actor) -> int:
        if next_command(actor) is None:
            return _ENDED
        number = self._actors.number(actor)
        (name, *_), replies = actor
        if name in UPSTREAM and "clean" in name and replies:
            self._walkers.add(number)
        return number

    def _steps(self, state: State) -> Iterator[tuple[int, Move, State]]:
        """Each step from a state: the part that moves, what it does, and the state after it."""
        keys = state[0]
        for at in range(1, len(state)):
            actor = state[at]
            if actor != _ENDED:
                move = self._moves.get((keys, actor)) or self._move(keys, actor)
                yield at, move, (move[2], *state[1:at], move[3], *state[at + 1 :])
        walking = not self._walkers.isdisjoint(state[1:])
        times = self._times.get((keys, walking))
        if times is None:
            times = self._times[keys, walking] = [*self._time_passes(keys, walking)]
        for move in times:
            yield 0, move, (move[2], *state[1:])

    def _move(self, keys: int, actor: int) -> Move:
        program, replies = self._actors.values[actor]
        command = next_command((program, replies))
        assert command is not None
        after, reply = self._effect(self._keys.values[keys], command)
        moved = self._number_of_actor((program, (*replies, reply)))
        made = command, reply, self._keys.number(after), moved
        self._moves[keys, actor] = made
        return made

    def _time_passes(self, number: int, walking: bool) -> Iterator[Move]:
        keys = self._keys.values[number]
        for command in _ends(keys, walking):
            after, reply = self._effect(keys, command)
            if after != keys:
                yield command, reply, self._keys.number(after), _ENDED

    def _effect(self, keys: Frozen, command: Command) -> tuple[Frozen, Any]:
        known = self.effects.get((keys, command))
        if known is None:
            queue = Queue(keys)
            queue.mutation = self._mutation
            name, *args = command
            reply = getattr(queue, name)(*args)
            after = keys if name in _READS else queue.frozen()
            try:
                check(Queue(keys), command, reply, queue)
            except Violation as violation:
                raise Violation(f"{violation}: {_line(command, reply)}") from None
            known = self.effects[keys, command] = (after, reply)
        return known

    def _step(self, state: State, at: int, move: Move) -> Step:
        who = f"{self._actors.values[state[at]][0][0]}#{at - 1}" if at else "time"
        return who, move[0], move[1]

    def _way(self, parents: Parents, state: State) -> list[Step]:
        way: list[Step] = []
        while (parent := parents[state]) is not None:
            way.append(self._step(*parent))
            state = parent[0]
        return way[::-1]

    # What a clean makes of any state, once everybody else is gone.

    def _check_recovery(self, keys: Frozen) -> None:
        settled = _after_everybody(keys)
        if settled in self._recovered:
            return
        self._recovered.add(settled)
        cleaned = self._run_alone(("deep_clean",), settled)
        cleaned = self._run_alone(("deep_clean",), _after_everybody(cleaned))
        queue = Queue(_after_everybody(cleaned))
        for item_id in {*IDS, *queue.main, *queue.processing}:
            _expect_clean(queue, item_id)
        if set(queue.data) != set(Queue(keys).data):
            raise Violation("a clean lost data")
        theirs = Queue(self._run_alone(("deep_clean_later",), settled))
        lost = [i for i in theirs.data if i not in theirs.main and theirs.new.get(i) != "buried"]
        if lost:
            raise Violation(f"no clean of upstream's returns {lost}")

    def _run_alone(self, program: Cast, keys: Frozen) -> Frozen:
        actor: Actor = (program, ())
        while (command := next_command(actor)) is not None:
            keys, reply = self._effect(keys, command)
            actor = (program, (*actor[1], reply))
        return keys


def _ends(keys: Frozen, walking: bool) -> Iterator[Command]:
    """What time may do: leases end, and delayed items come due."""
    new, old, delayed = dict(keys[4]), dict(keys[5]), keys[6]  # type: ignore[call-overload]
    for item_id in IDS:
        held = {leases[item_id] for leases in (new, old) if item_id in leases}
        if held - {"buried"} and not (walking and held == {"settling"}):
            yield "expire", item_id
    for item_id, when in delayed:  # type: ignore[attr-defined]
        if when == "later":
            yield "come_due", item_id


def _after_everybody(keys: Frozen) -> Frozen:
    """All programs are dead, all leases have ended, and all that is delayed is due."""
    queue = Queue(keys)
    for item_id in queue.delayed:
        queue.delayed[item_id] = "due"
    for name in NAMES:
        leases = queue.leases(name)
        for item_id in [i for i, holder in leases.items() if holder != "buried"]:
            del leases[item_id]
    queue.guarded.clear()
    queue.wins.clear()
    return queue.frozen()


def _expect_clean(queue: Queue, item_id: str) -> None:
    traces = [
        name
        for name, ids in (
            ("processing", queue.processing),
            ("cleaning", queue.cleaning),
            ("delayed", queue.delayed),
        )
        if item_id in ids
    ]
    if traces == ["processing"] and item_id in queue.data and queue.is_guarded(item_id):
        # A worker popped a buried item that a producer had pushed again, and died. Behind its guard
        # the item stays buried, and a kick takes its entry away.
        traces.clear()
    if traces:
        raise Violation(f"after cleans, {item_id} is left in {traces}")
    if item_id not in queue.data:
        if item_id in queue.main or item_id in queue.buried:
            raise Violation(f"after cleans, {item_id} is a ghost")
    elif item_id in queue.buried:
        if item_id in queue.main or not queue.is_guarded(item_id):
            raise Violation(f"after cleans, {item_id} is buried without its guard")
    elif queue.main.count(item_id) != 1:
        raise Violation(f"after cleans, {item_id} waits {queue.main.count(item_id)} times")


# What must hold for each step.


def check(before: Queue, command: Command, reply: Any, after: Queue) -> None:
    """Check one command.

    Raises:
        Violation: It breaks a guarantee.
    """
    name, *args = command
    if name in SCRIPTS:
        _check_order(name, args, before, after)
        if name == "lease":
            _check_turn(reply[0] if reply else None, before)
        for item_id in IDS:
            _check_data(name, before, after, item_id, reply)
            _check_half_steps(name, before, after, item_id)
            _check_schedule(name, args, before, after, item_id)
            if name in ("repair", "repair_unlisted", "prune", "restore_guards"):
                _check_clean(before, after, item_id)
                if name == "repair":
                    _check_popped(dict(args[1]).get(item_id), before, after, item_id)
    elif name == "exists_lease" and not reply[0]:
        lease_name, item_id = args
        # What we pushed may look so to 0.1, whose cleaners push only what they took from a list.
        if before.guarded.get(item_id, "pushed") != "pushed":
            raise Violation(
                f"a cleaner that reads the {lease_name} lease key sees no lease of {item_id}, "
                f"which is {before.guarded[item_id]}"
            )
    elif name == "lpush" and args[0] == "main" and len(args) == 3:
        _, item_id, looked = args
        # Nobody can help between a cleaner's look and its push.
        if before.guarded.get(item_id) == "pushed" and before.pushed[item_id] <= looked:
            raise Violation(
                f"a cleaner pushed {item_id} again, which we had pushed before its look"
            )


def _check_data(name: str, before: Queue, after: Queue, item_id: str, reply: Any) -> None:
    life, left = before.data.get(item_id), after.data.get(item_id)
    won = len(after.wins) > len(before.wins) and after.wins[-1][0] == item_id
    reported = name in ("complete", "remove") and reply[0] in (
        (item_id, "completed"),
        (item_id, "removed"),
    )
    if life is not None and left is None and not reported:
        raise Violation(f"{name} lost {item_id}")
    if reported and (life is None or left is not None):
        raise Violation(f"{name} reports that it removed {item_id}")
    if won and (name != "complete" or not reported):
        raise Violation(f"{name} reports a completed {item_id}")
    if life is None and left is not None and name != "add":
        raise Violation(f"{name} made {item_id}")
    if life is not None and left is not None and life != left:
        raise Violation(f"{name} changed the data of {item_id}")


def _listed(queue: Queue, item_id: str) -> int:
    return queue.main.count(item_id) + queue.processing.count(item_id)


def _scheduled(queue: Queue, item_id: str) -> bool:
    return item_id in queue.delayed or item_id in queue.buried


def _flaws(queue: Queue, item_id: str) -> set[str]:
    """What is broken about an ID, by the protocol's words."""
    flaws = set()
    listed, scheduled = _listed(queue, item_id), _scheduled(queue, item_id)
    held = {leases[item_id] for leases in (queue.new, queue.old) if item_id in leases}
    if item_id not in queue.data:
        if listed:
            flaws.add("a ghost")
        return flaws
    if not listed and not scheduled:
        if not held:
            flaws.add("an orphan")
        elif not any(is_session(holder) for holder in held):
            flaws.add("hidden behind a guard")
    if listed > 1:
        flaws.add("a duplicate")
    if listed and scheduled:
        flaws.add("listed and scheduled")
    if item_id in queue.delayed and item_id in queue.buried:
        flaws.add("delayed and buried")
    return flaws


def _check_half_steps(name: str, before: Queue, after: Queue, item_id: str) -> None:
    """No script leaves a flaw that was not there."""
    known = _flaws(before, item_id)
    new = _flaws(after, item_id) - known
    if name == "add" and "a ghost" in known:
        # It looks for the ID in no list: that would cost the lists' length.
        new -= {"a duplicate", "listed and scheduled"}
    if name in ("end_job", "complete") and _listed(before, item_id) > 1:
        # A worker looks only for the latest entry of what it has leased, for the same reason.
        new -= {"a ghost", "a duplicate", "listed and scheduled"}
    if name == "lease" and before.is_guarded(item_id):
        # A due item that is guarded is not looked for.
        new.discard("a duplicate")
    if new:
        raise Violation(f"{name} made {item_id} {', '.join(sorted(new))}")


def _check_schedule(
    name: str, args: Sequence[Any], before: Queue, after: Queue, item_id: str
) -> None:
    """Nothing delayed comes back early, and nothing buried by itself."""
    if item_id not in before.data or _listed(before, item_id) or not _listed(after, item_id):
        return
    if name in _ON_DEMAND or not _scheduled(before, item_id):
        return
    if item_id in before.buried:
        if not (name == "push_scheduled" and args[0] == "buried"):
            raise Violation(f"{name} returned {item_id}, which is buried")
    elif before.delayed[item_id] == "later":
        raise Violation(f"{name} returned {item_id} before its time")


def _check_order(name: str, args: Sequence[Any], before: Queue, after: Queue) -> None:
    """First in, first out: what enters comes last, unless it is asked for at the front."""
    entered = Counter(after.main) - Counter(before.main)
    moved = {i for i in after.main if entered[i] or after.pushed.get(i) != before.pushed.get(i)}
    known, stayed = iter(before.main), [i for i in after.main if i not in moved]
    if not all(item_id in known for item_id in stayed):
        raise Violation(f"{name} changed the order of what waits")
    # The newest is the first entry.
    is_front = name == "release" and args[-1]
    place = after.main[len(after.main) - len(moved) :] if is_front else after.main[: len(moved)]
    if {*place} != moved:
        raise Violation(f"{name} put {', '.join(sorted(moved))} into the wrong place")


def _check_turn(leased: str | None, before: Queue) -> None:
    """A lease takes the oldest that waits, before what guards prove due; else the next queue's.

    A queue of a lower priority has its turn only if a lease finds nothing in those before it.
    """
    waiting = [i for i in before.main if i in before.data and not _is_worked_on(before, i)]
    due = [i for i in IDS if before.state(i) == "due" and before.is_guarded(i)]
    if leased not in (waiting[-1:] or due or [None]):
        raise Violation(f"a lease took {leased}; it was the turn of {waiting[-1:] or due}")


def _is_worked_on(queue: Queue, item_id: str) -> bool:
    return item_id in queue.processing and queue.session(item_id) is not None


def _check_clean(before: Queue, after: Queue, item_id: str) -> None:
    """A clean takes nothing from anybody who holds a lease."""
    holders = [leases.get(item_id) for leases in (before.new, before.old)]
    if before.session(item_id) is None or item_id not in before.data:
        return
    if holders != [leases.get(item_id) for leases in (after.new, after.old)]:
        raise Violation(f"a clean changed the lease of {item_id}")
    if item_id in before.processing and item_id not in after.processing:
        raise Violation(f"a clean took {item_id} from its worker")
    if item_id in after.main and item_id not in before.main:
        raise Violation(f"a clean pushed {item_id}, which is leased")


def _check_popped(seen: Identity | None, before: Queue, after: Queue, item_id: str) -> None:
    """A clean takes nothing from a worker that popped what was pushed since the clean's first look.

    Until its settling lease ends, that worker may be about to set its own.
    """
    was_returned = item_id in before.processing and item_id not in after.processing
    if seen is None or not was_returned or not before.is_settling(item_id):
        return
    if item_id not in before.main and before.pushed[item_id] != seen[1]:
        raise Violation(f"a clean took {item_id} from who has popped it since the first look")


def _story(way: Sequence[Step]) -> str:
    return "\n".join(f"  {who}: {_line(command, reply)}" for who, command, reply in way)


def _line(command: Command, reply: Any) -> str:
    return f"{' '.join(map(str, command))} -> {reply}"
