"""What upstream's programs can do wrong among themselves, and the shortest way to each.

`docs/upstream.md` tells each way, command by command; `test_hazards.py` plays them on a real
server and compares. To print the page's blocks:

    python -m tests.model.hazards
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from tests.model.casts import made
from tests.model.checker import Checker, Step, Watch
from tests.model.keys import IDS, Frozen
from tests.model.programs import Actor, Cast, Command, next_command
from tests.model.real import KEYS, as_redis, making
from tests.model.scripts import Queue
from tests.servers import running_server

# Longer than any way to any of them.
_DEPTH = 16


@dataclass(frozen=True)
class Hazard:
    """One of them.

    Attributes:
        name: Its heading in the page.
        beginning: What there is at first.
        cast: The programs.
        happens: Whether a step is the one that goes wrong.
        begun: By place in the cast, the replies that a program has got at first.
    """

    name: str
    beginning: Frozen
    cast: tuple[Cast, ...]
    happens: Watch
    begun: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    def way(self) -> list[Step]:
        """The shortest sequence of commands that ends with it."""
        found = Checker().explore(self.beginning, self.cast, _DEPTH, self.happens, begun=self.begun)
        assert found.way is not None, f"it does not happen: {self.name}"
        return found.way


def _two_win(_: Queue, __: Actor, ___: Command, ____: Any, after: Queue) -> bool:
    return len({*after.wins}) < len(after.wins)


def _leases_what_waits(before: Queue, _: Actor, command: Command, *__: Any) -> bool:
    return command[0] == "setex" and command[2] in before.main


def _waits_twice(_: Queue, __: Actor, ___: Command, ____: Any, after: Queue) -> bool:
    return any(after.main.count(item_id) > 1 for item_id in IDS)


def _runs_nothing(before: Queue, _: Actor, command: Command, *__: Any) -> bool:
    return command[0] == "setex" and command[2] not in before.data


def _completes_beside_another(
    before: Queue, actor: Actor, command: Command, reply: Any, _: Queue
) -> bool:
    """A worker deletes the data while another holds the lease."""
    if command[0] != "del_data" or not reply:
        return False
    return before.new.get(command[1]) not in (None, actor[0][2])


def _deletes_a_later_life(
    before: Queue, actor: Actor, command: Command, reply: Any, _: Queue
) -> bool:
    """The data that the first worker deletes is not what it leased."""
    (name, *args), replies = actor
    if name != "work" or "session-1" not in args or command[0] != "del_data" or not reply:
        return False
    return bool(before.data[command[1]] != replies[1])


def _ends_unlisted(_: Queue, actor: Actor, command: Command, reply: Any, after: Queue) -> bool:
    """A program ends, and an item of which it had the entry is in no list."""
    over = next_command((actor[0], (*actor[1], reply))) is None
    return over and command[0] == "lrem" and after.state(command[2]) == "orphaned"


_LATER_1, _LATER_2 = ("work", "new", "session-1"), ("work", "new", "session-2")
_FIRST_1, _FIRST_2 = ("work", "old", "session-3"), ("work", "old", "session-4")
_A_WAITS = made(main=["a"], data={"a": 1})
_A_IS_ABANDONED = made(main=[], processing=["a"], data={"a": 1})
_A_IS_LEASED = made(main=[], processing=["a"], new={"a": "session-1"}, data={"a": 1})
# Worker 1 has leased `a`, and works.
_AT_WORK = {0: ("a", 1, None)}
_NOTHING = made(main=[], data={}, lives={})
HAZARDS = (
    Hazard(
        "Both generations on one queue: two workers, two winners",
        _A_IS_LEASED,
        (_LATER_1, ("light_clean_first",), _FIRST_1),
        _two_win,
        _AT_WORK,
    ),
    Hazard(
        "A worker that stalls past its lease: the item runs twice at once",
        _A_IS_LEASED,
        (_LATER_1, ("light_clean_later",), _LATER_2),
        _completes_beside_another,
        _AT_WORK,
    ),
    Hazard(
        "A worker that stalls past its lease: it deletes a new item with the same ID",
        _A_IS_LEASED,
        (_LATER_1, ("light_clean_later",), _LATER_2, ("produce", "new", "a")),
        _deletes_a_later_life,
        _AT_WORK,
    ),
    Hazard(
        "A clean between a pop and its lease",
        _A_WAITS,
        (_LATER_1, ("light_clean_later",)),
        _leases_what_waits,
    ),
    Hazard(
        "Two cleaners at once: the item waits twice",
        _A_IS_ABANDONED,
        (("light_clean_later",), ("light_clean_later",)),
        _waits_twice,
    ),
    Hazard(
        "A deep clean beside a producer: the item waits twice",
        _NOTHING,
        (("produce", "new", "a"), ("deep_clean_later",)),
        _waits_twice,
    ),
    Hazard(
        "0.1 runs an item that is finished, with empty data",
        _A_WAITS,
        (("produce", "old", "a"), _FIRST_1, _FIRST_2),
        _runs_nothing,
    ),
    Hazard(
        "The light clean for Node.js returns nothing",
        _A_IS_ABANDONED,
        (("light_clean_node",),),
        _ends_unlisted,
    ),
)
_NAMES = {
    "produce new": "producer",
    "produce old": "0.1 producer",
    "work new": "worker",
    "work old": "0.1 worker",
    "light_clean_later": "cleaner",
    "light_clean_first": "0.1 cleaner",
    "light_clean_node": "cleaner",
    "deep_clean_later": "deep cleaner",
}


def names_of(cast: Sequence[Cast]) -> list[str]:
    """What the page calls each program; numbers where there are several of a kind."""
    kinds = [_NAMES[" ".join(program[:2]) if len(program) > 1 else program[0]] for program in cast]
    return [
        f"{kind} {kinds[: at + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for at, kind in enumerate(kinds)
    ]


def played(raw: redis.Redis, hazard: Hazard) -> Iterator[str]:
    """Play a way on a real server; its lines as the page has them."""
    for command in making(hazard.beginning, now_ms=0):
        raw.execute_command(*command)
    names = names_of(hazard.cast)
    for who, command, _ in hazard.way():
        if who == "time":
            held = [key for key in (KEYS.lease(b"a"), KEYS.old_lease(b"a")) if raw.delete(key)]
            assert held
            yield f"{'':14}({held[0].decode()} ends)"
            continue
        words = as_redis(command)
        reply = raw.execute_command(*words)
        line = f"{names[int(who.partition('#')[2])]:14}{' '.join(words)}"
        yield f"{line:62}{_shown(words[0], reply)}".rstrip()


def _shown(command: str, reply: Any) -> str:
    match reply:
        case None:
            return "(nil)"
        case bool():
            return "1" if command == "SETNX" else "OK"
        case bytes():
            return reply.decode() if len(reply) < 3 else "its data"
        case list():
            return " ".join(each.decode() for each in reply) or "(empty)"
        case _:
            return str(reply)


def main() -> None:
    """Print the blocks of the page."""
    with running_server() as server, server.client() as raw:
        for hazard in HAZARDS:
            print(f"## {hazard.name}\n\n```text")
            print(*played(raw, hazard), sep="\n")
            print("```\n")


if __name__ == "__main__":
    main()
