"""What upstream's programs and ours send, one command after the other.

A program is a generator: it yields a command, which is the name and the arguments of a method of
`Queue`, and is sent its reply. It has no state but the replies so far.

Upstream sends several commands in one pipeline; in Go, Node.js, Rust and C# that is no transaction,
so here each stands alone. Facts are from the sources of 0.1.5 and of the version after it.
"""

from collections.abc import Callable, Generator, Sequence
from functools import cache
from typing import Any

Command = tuple[Any, ...]
Program = Generator[Command, Any, Any]
# A program's name and its arguments.
Cast = tuple[Any, ...]
# A program and the replies that it has got.
Actor = tuple[Cast, tuple[Any, ...]]

LATER, FIRST = "new", "old"


# Upstream's.


def produce(name: str, item_id: str) -> Program:
    """0.1 sets the data unconditionally; later versions add an item that is not there."""
    if name == LATER:
        if not (yield "setnx_data", item_id):
            return
    else:
        yield "set_data", item_id
    yield "lpush", "main", item_id


def work(name: str, session: str) -> Program:
    """Lease the next item and complete it."""
    item_id = yield ("rpoplpush",)
    if item_id is None:
        return
    life = yield "get", item_id
    if not life and name == LATER:
        # The entry stays in processing.
        return
    yield "setex", name, item_id, session
    if name == LATER:
        yield "del_data", item_id
        yield "lrem", "processing", item_id
    else:
        if not (yield "lrem", "processing", item_id):
            return
        yield "del_data", item_id, life or -1
    yield "del_lease", name, item_id


def light_clean_later() -> Program:
    for item_id in (yield "lrange", "processing"):
        is_leased, looked = yield "exists_lease", LATER, item_id
        if is_leased:
            continue
        is_there = yield "exists_data", item_id
        yield "lrem", "processing", item_id
        if is_there:
            yield "lpush", "main", item_id, looked


def light_clean_node() -> Program:
    """As the later one, but for the item it looks at the lease key a second time."""
    for item_id in (yield "lrange", "processing"):
        is_leased, looked = yield "exists_lease", LATER, item_id
        if is_leased:
            continue
        is_there, _ = yield "exists_lease", LATER, item_id
        yield "lrem", "processing", item_id
        if is_there:
            yield "lpush", "main", item_id, looked


def light_clean_first() -> Program:
    """0.1 notes in a list of its own what it has in hand."""
    for item_id in (yield "lrange", "processing"):
        is_leased, looked = yield "exists_lease", FIRST, item_id
        if is_leased:
            continue
        yield "lpush", "cleaning", item_id
        if (yield "lrem", "processing", item_id):
            yield "lpush", "main", item_id, looked
        yield "lrem", "cleaning", item_id
    for item_id in (yield "lrange", "cleaning"):
        is_leased, looked = yield "exists_lease", FIRST, item_id
        if (
            not is_leased
            and not (yield "lpos", "main", item_id)
            and not (yield "lpos", "processing", item_id)
        ):
            yield "lpush", "main", item_id, looked
        yield "lrem", "cleaning", item_id


def deep_clean_later() -> Program:
    items = yield ("keys_data",)
    waiting = yield "lrange", "main"
    for item_id in items:
        if item_id in waiting:
            continue
        is_leased, looked = yield "exists_lease", LATER, item_id
        if not is_leased:
            yield "lrem", "processing", item_id
            yield "lpush", "main", item_id, looked


# Ours: the calls of the core, for a few IDs.


def add(item_id: str, later: bool) -> Program:
    yield "add", item_id, later


def _lease(session: str) -> Generator[Command, Any, tuple[str, int] | None]:
    leased = yield "lease", session
    # What has lost its guards is left to the script that looks into the lists.
    if leased is None and (yield from _promote()):
        leased = yield "lease", session
    return leased


def lease_and_complete(session: str) -> Program:
    leased = yield from _lease(session)
    if leased is not None:
        yield "touch", leased[0]
        yield "complete", leased[0], session


def run_jobs(session: str, end: str) -> Program:
    """What `rwq work` does with an item, whose command ends so: `done`, `failed` or `stopped`.

    A failed item is tried once more, later, and is then buried. One whose worker died in its last
    try is buried unseen.
    """
    leased = yield from _lease(session)
    if leased is None:
        return
    item_id, returns = leased
    if returns > 1:
        yield "end_job", item_id, session, "buried", False
        return
    yield "touch", item_id, session
    if end == "done":
        yield "complete", item_id, session, True
    elif end == "stopped":
        yield "end_job", item_id, session, "released", False
    else:
        how = "buried" if returns else "delayed"
        yield "end_job", item_id, session, how, how == "delayed"


def lease_id(item_id: str, session: str) -> Program:
    yield "lease_id", item_id, session


def complete(item_id: str) -> Program:
    yield "complete", item_id, None


def remove(item_id: str) -> Program:
    life = yield "get", item_id
    yield "remove", item_id, life


def release(item_id: str, session: str, force: bool, front: bool) -> Program:
    yield from _unless_in_transit(
        item_id, force, lambda first: _once("release", item_id, session, force, first, front)
    )


def schedule(item_id: str, how: str, session: str, force: bool) -> Program:
    yield from _unless_in_transit(
        item_id, force, lambda first: _once("schedule", item_id, how, session, force, first)
    )


def _once(*command: Any) -> Program:
    return (yield command)


def _unless_in_transit(item_id: str, force: bool, attempt: Callable[[bool], Program]) -> Program:
    """Between the two looks-up is the grace period."""
    ((_, status),) = yield from attempt(not force)
    if status == "in-transit":
        before = yield "look_up", (item_id,)
        after = yield "look_up", (item_id,)
        if after[0][3] is None or _is_same(after[0][3], before[0][3]):
            ((_, status),) = yield from attempt(False)
    return status


def _is_same(identity: Any, seen: Any) -> bool:
    """Whether an item still has its data, and was not pushed since."""
    return seen is None or (identity[0] == seen[0] and identity[2] <= seen[1])


def kick(item_id: str) -> Program:
    yield "push_scheduled", "buried", (item_id,)


def light_clean() -> Program:
    abandoned, ghosts = yield from _broken_in_processing()
    yield from _promote()
    yield from _repair_processing(abandoned, ghosts)


def deep_clean() -> Program:
    yield from _deep_clean(many=False)


def deep_clean_of_many() -> Program:
    """With more than a few orphans: the lists are read once more for all of them."""
    yield from _deep_clean(many=True)


def _deep_clean(*, many: bool) -> Program:
    abandoned, ghosts = yield from _broken_in_processing()
    found = yield from _survey()
    unguarded = yield from _unguarded()
    due = yield from _promote()
    if not (abandoned or ghosts or unguarded or any(found.values())):
        return
    done = yield from _repair_processing(abandoned, ghosts)
    for state, seen in (
        ("orphaned", found["orphaned"]),
        ("ghost", found["ghost"]),
        ("duplicated", found["duplicated"]),
    ):
        left = tuple(each for each in seen if each[0] not in done)
        if left and many and state == "orphaned":
            done |= yield from _repair_unlisted(left)
        elif left:
            done |= _done((yield "repair", (state,), left))
    done |= due
    if stale := tuple(i for i, _ in found["cleaning"] if i not in due):
        looked = yield "look_up", stale
        stale = tuple(i for i, state, places, _ in looked if _is_stale_in_cleaning(state, places))
        if stale:
            yield "prune", "cleaning", stale
    if left := tuple((i, None) for i, _ in found["schedule"] if i not in done):
        yield "repair", (), left
    for which in ("delayed", "buried"):
        if ids := tuple(i for i, where in found[which] if i not in due):
            yield "prune", which, ids
    if ids := tuple(i for i in unguarded if i not in done):
        yield "restore_guards", ids


def _repair_unlisted(seen: Sequence[tuple[str, Any]]) -> Generator[Command, Any, set[str]]:
    done: set[str] = set()
    pushes = {}
    for item_id, _ in seen:
        pushes[item_id] = yield "pushes", item_id
    listed = {*(yield "lrange", "main"), *(yield "lrange", "processing")}
    listed |= {*(yield "lrange", "main")}
    for item_id, identity in seen:
        if item_id not in listed:
            done |= _done((yield "repair_unlisted", item_id, identity, pushes[item_id]))
    done -= {item_id for item_id, _ in seen if item_id in listed}
    if left := tuple(each for each in seen if each[0] not in done):
        done |= _done((yield "repair", ("orphaned",), left))
    return done


def _distinct(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reversed(ids)))


def _done(outcomes: Sequence[tuple[str, str]]) -> set[str]:
    return {item_id for item_id, status in outcomes if status not in ("skipped", "elsewhere")}


def _is_stale_in_cleaning(state: str, places: Sequence[str]) -> bool:
    return len(places) > ("cleaning" in places) or state in ("gone", "stray-lease")


def _broken_in_processing() -> Generator[Command, Any, tuple[Any, Any]]:
    ids = _distinct((yield "lrange", "processing"))
    return (yield "states", ids) if ids else ((), ())


def _promote() -> Generator[Command, Any, set[str]]:
    due = yield ("due",)
    if not due:
        return set()
    return _done((yield "push_scheduled", "delayed", due))


def _unguarded() -> Generator[Command, Any, tuple[str, ...]]:
    ids = yield ("scheduled",)
    return (yield "unguarded", ids) if ids else ()


def _repair_processing(abandoned: Any, ghosts: Any) -> Generator[Command, Any, set[str]]:
    done: set[str] = set()
    if abandoned:
        done |= _done((yield "repair", ("abandoned", "duplicated"), abandoned))
    if ghosts:
        done |= _done((yield "repair", ("ghost",), tuple((i, None) for i in ghosts)))
    return done


def _survey() -> Generator[Command, Any, dict[str, list[tuple[str, Any]]]]:
    """The walk over the lists, the sorted sets and the data keys, then a look at each suspect."""
    entries = [*(yield "lrange", "main")]
    entries += yield "lrange", "processing"
    entries += yield ("scheduled",)
    items = yield ("keys_data",)
    noted = yield "lrange", "cleaning"
    suspects = {i for i in entries if entries.count(i) > 1 or i not in items}
    suspects |= {i for i in items if i not in entries} | {*noted}
    found: dict[str, list[tuple[str, Any]]] = {
        name: []
        for name in ("orphaned", "duplicated", "ghost", "cleaning", "schedule", "delayed", "buried")
    }
    if not suspects:
        return found
    for item_id, state, places, identity in (yield "look_up", tuple(sorted(suspects))):
        listed = "main" in places or "processing" in places
        scheduled = [name for name in ("delayed", "buried") if name in places]
        if state in ("orphaned", "duplicated"):
            found[state].append((item_id, identity))
        if state == "ghost" and "main" in places:
            found["ghost"].append((item_id, None))
        if state == "ghost":
            for name in scheduled:
                found[name].append((item_id, name))
        elif scheduled and listed and state not in ("delayed", "due", "buried"):
            found["schedule"].append((item_id, None))
        if "cleaning" in places and _is_stale_in_cleaning(state, places):
            found["cleaning"].append((item_id, None))
    return found


UPSTREAM = ("produce", "work", "light_clean_later", "light_clean_node", "light_clean_first")
UPSTREAM += ("deep_clean_later",)


@cache
def next_command(actor: Actor) -> Command | None:
    """The command that a program sends after these replies; None at its end."""
    (name, *args), replies = actor
    program: Program = globals()[name](*args)
    try:
        command = next(program)
        for reply in replies:
            command = program.send(reply)
    except StopIteration:
        return None
    return command
