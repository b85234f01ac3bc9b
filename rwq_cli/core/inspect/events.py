"""What happens to the items of queues, as it happens: the events of `rwq tail`.

The server names the keys of items and leases that change; what happened follows from the state of
an ID before and after. What happens between two looks, a few hundredths of a second apart, is one
event: `added and completed`.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.following import Followed, Follower
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.model import FLUSHED, MISSED, Event, State
from rwq_cli.core.state.reads import existing, read_facts
from rwq_cli.core.state.rules import Facts

# How many IDs are looked at each time, and how long a look takes at least: a tenth of the server's
# time for the largest. Of more that changed, the number is an event.
IDS_PER_LOOK = 250
_LOOK_EVERY_S = 0.05
# How long a look waits for something to happen; so often the states that pass are looked at again.
_WAIT_S = 0.25
# How often the lists are looked at where no keys can be followed.
_POLL_S = 1.0
# How many states are remembered, those that changed last.
_REMEMBERED = 100_000
# A worker takes this long at most between two of its steps: a state that lasts longer is an event.
_STEP_S = 1.0
# How many entries of an end of a list are read for one ID that is looked for there, and at least.
_ENTRIES_PER_ID, _ENTRIES_MIN = 4, 100
# The states between two steps of a producer, a worker or a cleaner.
_PASSING = frozenset({State.ORPHANED, State.UNLISTED, State.ABANDONED, State.DUPLICATED})
# What another cleaner returns without a change of a key that is followed.
_RETURNABLE = frozenset({State.ABANDONED, State.ORPHANED})
_TAKEN = frozenset({State.LEASED, State.HELD})
_ASIDE = frozenset({State.DELAYED, State.DUE, State.BURIED})
_INFIXES = b":item:", b":leased_by_session:", b":lease:"
EDITED, RENEWED = "edited", "renewed"
# What has happened to an item that is in a state now.
_NAMES = {
    State.WAITING: "returned",
    **dict.fromkeys(_TAKEN, "leased"),
    **dict.fromkeys((State.DELAYED, State.DUE), "delayed"),
    State.BURIED: "buried",
    State.ABANDONED: "lost",
}


class Seen(NamedTuple):
    """What was seen of an ID last; `leased_s` is since when, on the monotonic clock, if known."""

    state: State
    holder: bytes | None = None
    leased_s: float | None = None


class Changed(NamedTuple):
    """Which keys of an ID changed: its data, a lease, or both; when first, and how often."""

    at_s: float
    data_times: int = 0
    lease_times: int = 0

    def then(self, later: "Changed") -> "Changed":
        return Changed(
            self.at_s, self.data_times + later.data_times, self.lease_times + later.lease_times
        )


def event_name(before: Seen | None, facts: Facts, changed: Changed) -> str | None:
    """What happened to an ID; None for nothing that is worth a word."""
    after, old = facts.state, before and before.state
    if not facts.has_data:
        return _end_name(old, changed)
    name = _NAMES.get(after, after.value)
    if before is None:
        is_new = changed.data_times > 0
        return name if not is_new else "added" if after is State.WAITING else f"added and {name}"
    if name != _NAMES.get(before.state, before.state.value):
        return (
            f"returned and {name}" if before.state is State.ABANDONED and after in _TAKEN else name
        )
    if after in _TAKEN and facts.session is not None and facts.session.holder != before.holder:
        return f"returned and {name}"
    if changed.data_times:
        return EDITED
    if changed.lease_times and name == "delayed":
        # To another time.
        return name
    return RENEWED if changed.lease_times and after in _TAKEN else None


def _end_name(old: State | None, changed: Changed) -> str | None:
    if not changed.data_times:
        # The lease of an item that was completed before.
        return None
    if old is None and changed.data_times > 1:
        # It was set, too.
        return "added and completed"
    if old in _TAKEN or old is State.UNLISTED:
        return "completed"
    # A lease may have been set meanwhile; or a settling lease was deleted with the item.
    is_unclear = old is None or old is State.ABANDONED or changed.lease_times > 0
    return "completed or removed" if is_unclear and old not in _ASIDE else "removed"


class Tail:
    """Follows the items of queues; `matches` says of which IDs."""

    def __init__(self, matches: Callable[[bytes], bool] = lambda _item_id: True) -> None:
        self._matches = matches
        self._follower = Follower(
            _INFIXES,
            "the queue is looked at once a second, and what happens between two looks is not seen",
        )
        self._tails: dict[bytes, _QueueTail] = {}

    def look(self, queues: Sequence[Queue]) -> list[Event]:
        """Wait a moment for something to happen in these queues; return what has happened."""
        if not queues:
            time.sleep(_WAIT_S)
            return []
        self._tails = {
            queue.name: self._tails.get(queue.name) or _QueueTail(queue) for queue in queues
        }
        groups = self._follower.by_server(queues)
        look = partial(self._look, wait_s=_WAIT_S / len(groups))
        events = [event for group in groups for event in self._follower.reading(group, look)]
        return sorted(events, key=lambda event: event.at_ms)

    def _look(self, followed: Followed, wait_s: float) -> list[Event]:
        queues, tracker, is_fresh = followed
        tails = [self._tails[queue.name] for queue in queues]
        if tracker is None:
            time.sleep(_POLL_S)
            return [event for tail in tails for event in tail.polled()]
        began_s = time.monotonic()
        if is_fresh:
            for tail in tails:
                tail.forget()
        tracker.wait(wait_s)
        # Makes certain that the connection still is one.
        tracker.call_all([("PING",)])
        changes = tracker.take()
        by_name: dict[bytes, dict[bytes, Changed]] = {queue.name: {} for queue in queues}
        # In the order in which they were first named.
        for key, (at_s, times) in changes.keys.items():
            for infix in _INFIXES:
                name, separator, item_id = key.partition(infix)
                if separator and name in by_name:
                    if self._matches(item_id):
                        is_data = infix == b":item:"
                        now = Changed(at_s, times * is_data, times * (not is_data))
                        changed = by_name[name]
                        changed[item_id] = changed[item_id].then(now) if item_id in changed else now
                    break
        events = [event for tail in tails for event in tail.events(by_name[tail.name])]
        if changes.missed or changes.has_flushed:
            for tail in tails:
                tail.forget()
            # They are of any of the queues.
            name = queues[0].name if len(queues) == 1 else b""
            if changes.missed:
                events.append(_missed(name, changes.missed))
            if changes.has_flushed:
                events.append(Event(name, None, FLUSHED, _unix_ms(began_s)))
        if any(by_name.values()):
            tracker.read_for(_LOOK_EVERY_S - (time.monotonic() - began_s))
        return events

    def close(self) -> None:
        self._follower.close()


def _missed(queue: bytes, count: int) -> Event:
    return Event(queue, None, MISSED, _unix_ms(time.monotonic()), missed=count)


def _unix_ms(at_s: float) -> int:
    return round(1000 * (time.time() - (time.monotonic() - at_s)))


class _QueueTail:
    """What was seen of the items of one queue."""

    def __init__(self, queue: Queue) -> None:
        self.name = queue.name
        self._queue = queue
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()
        # The IDs between two steps of somebody: what changed, and since when they are so.
        self._passing: dict[bytes, tuple[Changed, float]] = {}
        self._listed: Mapping[bytes, object] | None = None
        self._recheck_s = 0.0

    def forget(self) -> None:
        self._seen.clear()
        self._passing.clear()

    def events(self, changed: Mapping[bytes, Changed]) -> Iterator[Event]:
        """What happened to IDs whose keys changed."""
        now_s = time.monotonic()
        looked = dict(list(changed.items())[-IDS_PER_LOOK:])
        for item_id in changed.keys() - looked.keys():
            self._seen.pop(item_id, None)
            self._passing.pop(item_id, None)
        if skipped := len(changed) - len(looked):
            yield _missed(self.name, skipped)
        for item_id, (before, _) in list(self._passing.items()):
            looked[item_id] = before.then(
                looked.get(item_id, before._replace(data_times=0, lease_times=0))
            )
        if now_s - self._recheck_s > _STEP_S:
            self._recheck_s = now_s
            states = ((i, seen.state) for i, seen in reversed(self._seen.items()))
            lost = [item_id for item_id, state in states if state in _RETURNABLE]
            looked = {i: Changed(now_s) for i in lost[:IDS_PER_LOOK]} | looked
        for facts in self._facts(looked):
            yield from self._event(facts, looked[facts.item_id], now_s)

    def _facts(self, ids: Iterable[bytes]) -> Iterator[Facts]:
        """The facts about IDs: those that are listed, near the ends of the lists."""
        wanted, queue = dict.fromkeys(ids), self._queue
        present = existing(queue, wanted)
        for item_id in wanted.keys() - dict.fromkeys(present):
            yield Facts(item_id, has_data=False)
        if not present:
            return
        entries = max(_ENTRIES_MIN, _ENTRIES_PER_ID * len(present))
        lists = queue.keys.main, queue.keys.processing
        ends = queue.call_all(
            [
                *(("LRANGE", key, 0, entries - 1) for key in lists),
                *(("LRANGE", key, -entries, -1) for key in lists),
                *(("LLEN", key) for key in lists),
            ],
            atomic=True,
        )
        counts: list[Counter[bytes]] = []
        for newest, oldest, length in zip(ends[:2], ends[2:4], ends[4:], strict=True):
            # Short lists were read twice.
            overlap = max(0, len(newest) + len(oldest) - length)
            counts.append(Counter(filter(wanted.__contains__, [*newest, *oldest[overlap:]])))
        main, processing = counts
        is_whole = max(ends[4:]) <= 2 * entries
        far: list[bytes] = []

        def places(item_id: bytes) -> tuple[int, int, int]:
            return main[item_id], processing[item_id], 0

        for facts in read_facts(queue, present, counts=places):
            is_near = is_whole or facts.is_listed or facts.has_schedule_entry
            # Another may be pushed in a moment.
            if is_near or not self._is_lasting(facts.item_id):
                yield facts
            else:
                far.append(facts.item_id)
        yield from facts_of(queue, far)

    def _is_lasting(self, item_id: bytes) -> bool:
        if item_id not in self._passing:
            return item_id in self._seen
        return time.monotonic() - self._passing[item_id][1] > _STEP_S / 2

    def _event(self, facts: Facts, changed: Changed, now_s: float) -> Iterator[Event]:
        item_id, after, session = facts.item_id, facts.state, facts.session
        before = self._seen.get(item_id)
        is_lost = before is not None and before.state in _TAKEN and after is State.ABANDONED
        if after in _PASSING and not is_lost and (before is None or before.state is not after):
            since_s = self._passing.get(item_id, (changed, now_s))[1]
            if now_s - since_s < _STEP_S:
                self._passing[item_id] = changed, since_s
                return
        self._passing.pop(item_id, None)
        name = event_name(before, facts, changed)
        holder, is_usual = session and session.holder, name in (RENEWED, EDITED)
        began_s = before and before.leased_s
        leased_s = None
        if after not in _TAKEN:
            leased_s, began_s = None if began_s is None else changed.at_s - began_s, None
        elif not is_usual:
            began_s = changed.at_s
        self._remember(facts, began_s)
        if name is not None:
            yield Event(
                self.name,
                item_id,
                name,
                _unix_ms(changed.at_s),
                before and before.state,
                after,
                holder or (before and before.holder),
                leased_s,
                facts.reason,
                is_usual=is_usual,
            )

    def _remember(self, facts: Facts, leased_s: float | None = None) -> None:
        self._seen.pop(facts.item_id, None)
        if facts.has_data:
            holder = facts.session and facts.session.holder
            self._seen[facts.item_id] = Seen(facts.state, holder, leased_s)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    def polled(self) -> Iterator[Event]:
        """What is different in the lists, where no keys can be followed."""
        keys, entries = self._queue.keys, IDS_PER_LOOK
        commands = [
            *(("LRANGE", key, -entries, -1) for key in (keys.main, keys.processing)),
            *(("LRANGE", key, 0, entries - 1) for key in (keys.main, keys.processing)),
            *(("ZRANGE", key, 0, entries - 1) for key in (keys.delayed, keys.buried)),
        ]
        pages = zip(commands, self._queue.call_all(commands), strict=True)
        listed = {item_id: key for (_, key, *_), page in pages for item_id in page}
        last, self._listed = self._listed, listed
        at_s = time.monotonic()
        if last is None:
            for facts in self._facts(listed):
                self._remember(facts)
            return
        different = {i for i in listed.keys() | last.keys() if listed.get(i) != last.get(i)}
        yield from self.events({i: Changed(at_s, 1, 1) for i in different})
