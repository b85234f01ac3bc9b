"""Our side of the state machine: a connection that checks every write, and lets others in between.

Before each command that the core sends, the adversary may act: a foreign program takes a step, a
lease ends, another rwq does something, or the process is killed. Around each write the raw keys
are compared, so that whatever is found broken afterwards was broken by that one command.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from rwq_cli.core import Connection
from rwq_cli.core.model import Status
from rwq_cli.core.server.commands import ScriptCommand
from tests.live.foreign import Books
from tests.live.raw_keys import BURIED_GUARD, DELAYED_GUARD, RawKeys, read_raw_keys

_READS = frozenset(
    (
        *("LRANGE", "LLEN", "LPOS", "SCAN", "ZSCAN", "HSCAN", "TYPE", "EXISTS", "TIME"),
        *("ZRANGE", "ZRANGEBYSCORE", "ZMSCORE", "ZCARD", "HMGET", "MGET", "INFO", "CONFIG"),
        *("GET", "STRLEN", "GETRANGE", "OBJECT"),
    )
)
_READING_SCRIPTS = frozenset(
    (
        *("look_up", "probe", "states", "snapshot", "scheduled_page", "results"),
        # It changes nothing but the lock.
        "lock",
    )
)
_CLEANING_SCRIPTS = frozenset(("repair", "prune", "delete_stray_leases"))
# What brings a delayed item back before its time, or a buried one at all: by name, when asked to.
_BRINGING_BACK = frozenset(("put", "lease_by_id"))
# What acts on chosen items.
_ACTING_SCRIPTS = frozenset(("complete", "put", "push_scheduled"))
# A guard outlives the due time by a minute; some of it passes until we have read what is left.
_MARGIN_MS = 55_000


class Killed(Exception):
    """Our process ended here."""


@dataclass(frozen=True, slots=True)
class ChosenItems:
    """What chosen items must still be when something is done to them; data None for any."""

    states: frozenset[str]
    data: dict[bytes, bytes] | None

    def has(self, item_id: bytes, seen: RawKeys) -> bool:
        """Whether an item still is what it was chosen for."""
        same = self.data is None or seen.data.get(item_id) == self.data.get(item_id)
        states = seen.states(item_id)
        if "leased" in states and "abandoned" not in states:
            # It waits as well, but somebody works on it.
            states.discard("waiting")
        return same and bool(states & self.states)


Adversary = Callable[[int, str], None]


def nobody(_point: int, _command: str) -> None:
    """The adversary that leaves us alone."""


class WatchedConnection(Connection):
    """A connection whose every write is checked by the raw keys before and after it."""

    def __init__(
        self, client: redis.Redis, witness: redis.Redis, queue: bytes, books: Books
    ) -> None:
        super().__init__(client)
        self._witness = witness
        self._queue = queue
        self._books = books
        # Whose data our completes deleted, and how often, since `begin`.
        self.vanished: Counter[bytes] = Counter()
        self.adversary: Adversary = nobody
        # What is being done: a kick, something that puts items at the front, a complete that keeps
        # an outcome, something to chosen items.
        self.kicks = False
        self.front = False
        self.keeps = False
        self.chosen: ChosenItems | None = None
        self.restored: Counter[bytes] = Counter()
        self._point = 0

    def begin(self, adversary: Adversary) -> None:
        """Start an operation: the adversary is told the number and name of each command."""
        self.adversary = adversary
        self.vanished = Counter()
        self._point = 0

    def call_all(
        self, commands: Any, *, atomic: bool = False, return_errors: bool = False
    ) -> list[Any]:
        sent = list(commands)
        if len(sent) == 1 and isinstance(sent[0], ScriptCommand):
            script, name = sent[0], sent[0].script.name
            self._let_others_in(name)
            if name not in _READING_SCRIPTS:
                with self._watched(name, script[3 + int(script[2]) :]):
                    return super().call_all(sent)
        else:
            self._let_others_in(sent[0][0] if len(sent) == 1 else "several")
            if {command[0] for command in sent} <= _READS:
                return super().call_all(sent, atomic=atomic, return_errors=return_errors)
        # A script without items and a transaction that reads, before items are added; and the other
        # commands of the core that could write: the wait for an item, and the end of an undo, whose
        # marks are no part of what is compared.
        before = self.look()
        replies = super().call_all(sent, atomic=atomic, return_errors=return_errors)
        assert self.look() == before, f"{sent} changed something"
        return replies

    def stream(self, requests: Iterable[Any], **_options: Any) -> Any:
        """One call after the other, so that each can be checked; the wire allows that order.

        Only adding without the check works by transactions.
        """
        for request in requests:
            if isinstance(request, ScriptCommand):
                yield self.call_all([request])[0]
            elif request is not None:
                self._let_others_in("add")
                with self._watched("add"):
                    replies = super().call_all(request, atomic=True)
                yield replies

    def look(self) -> RawKeys:
        """The raw keys now, which must agree with the books."""
        return read_raw_keys(self._witness, self._queue)

    def _let_others_in(self, command: str) -> None:
        point, self._point = self._point, self._point + 1
        self.adversary(point, command)

    @contextmanager
    def _watched(self, script: str, args: Sequence[Any] = ()) -> Iterator[None]:
        """Compare the raw keys around one of our scripts."""
        before = self.look()
        assert before.data == self._books.live
        yield
        after = self.look()
        self._check_data(script, args, before, after)
        # A whole guard proves that the item is in no list, unless somebody pushed it by hand, or
        # added it over itself without the check: then bringing it back makes a second entry, and
        # completing it leaves one.
        misled = {item_id for item_id in before.listed if before.guard(item_id)}
        ghosts = after.ghosts - before.ghosts - misled
        assert not ghosts, f"{script} left ghosts: {ghosts}"
        orphans = after.orphans - before.orphans
        assert not orphans, f"{script} left orphans: {orphans}"
        duplicates = after.listed_twice - before.listed_twice
        if script == "add":
            # An ID that was left in a list by a foreign complete is in it a second time now; to
            # look for it there would cost the list's length for every item that is added.
            duplicates -= before.ghosts
        duplicates -= misled
        assert not duplicates, f"{script} left duplicates: {duplicates}"
        hidden = after.hidden - before.hidden
        assert not hidden, f"{script} left a guard without an entry: {hidden}"
        self._check_schedule(script, before, after)
        self._check_settling(script, before, after)
        self._check_order(script, args, before, after)
        self._check_leases(script, before, after)
        if self.chosen is not None and script in _ACTING_SCRIPTS:
            for item_id in before.data:
                is_same = before.about(item_id) == after.about(item_id)
                assert is_same or self.chosen.has(item_id, before), (
                    f"{script} did something to {item_id!r}, which was {before.states(item_id)}"
                )
        if script == "repair":
            _check_returns(script, before, after)
        if script in _CLEANING_SCRIPTS:
            _check_live_work(script, before, after)

    def _check_data(
        self, script: str, args: Sequence[Any], before: RawKeys, after: RawKeys
    ) -> None:
        """An add and a restore make data, a complete and a removal delete them; nothing else."""
        gone = before.data.keys() - after.data.keys()
        assert not gone or script == "complete", f"{script} deleted {gone}"
        for item_id in gone:
            self._books.complete(item_id)
        self.vanished.update(gone)
        # Kept in the step that completes; what an earlier item left must not pass for this one's. A
        # removal makes none, and leaves that one.
        ended = set() if Status.REMOVED.value in args else gone
        expected = before.results | gone if self.keeps else before.results - ended
        assert after.results == (expected if gone else before.results), f"{script} kept another"
        kept = {item_id: after.data[item_id] for item_id in before.data.keys() & after.data.keys()}
        assert kept == self._books.live, f"{script} changed data"
        for item_id in after.data.keys() - before.data.keys():
            assert script in ("add", "restore"), f"{script} made data"
            self._books.add(item_id, after.data[item_id])
            self.restored[item_id] += script == "restore"

    def _check_order(
        self, script: str, args: Sequence[Any], before: RawKeys, after: RawKeys
    ) -> None:
        """First in, first out: what enters main comes last, or next where that is asked for."""
        entered = Counter(after.main) - Counter(before.main)
        if script == "lease":
            # It may promote an ID and take an older entry of it.
            due = before.delayed.keys() - after.delayed.keys()
            entered |= Counter(due.intersection(after.main))
        count = entered.total()
        if not self.front:
            known = iter(before.main)
            assert all(item_id in known for item_id in after.main[count:]), f"{script} reorders"
            assert Counter(after.main[:count]) == entered, f"{script} put {entered} before others"
        elif entered:
            # What was named may have waited already.
            first = min(map(after.main.index, entered))
            assert {*after.main[first:]} <= {*args}, f"{script} put {entered} behind others"

    def _check_leases(self, script: str, before: RawKeys, after: RawKeys) -> None:
        """What is leased by us ends by itself."""
        for (item_id, kind), holder in after.leases.items():
            if before.leases.get((item_id, kind)) != holder and after.workers(item_id):
                key = self._queue + b":" + kind.encode() + b":" + item_id
                assert self._witness.pttl(key) != -1, f"{script} leased {item_id!r} without end"

    def _check_schedule(self, script: str, before: RawKeys, after: RawKeys) -> None:
        """Nothing delayed comes back early, nothing buried on its own; what is put away is guarded.

        What is in a list besides is there by somebody else's doing, and its entry means nothing.
        """
        seconds, microseconds = self._witness.time()
        now_ms = float(seconds) * 1000 + float(microseconds) / 1000
        came_back = (before.scheduled & after.listed & before.data.keys()) - before.listed
        if script not in _BRINGING_BACK:
            for item_id in came_back:
                if item_id in before.buried:
                    assert self.kicks, f"{script} brought {item_id!r} back, which is buried"
                else:
                    early_ms = before.delayed[item_id] - now_ms
                    assert early_ms <= 0, f"{script} brought {item_id!r} back {early_ms} ms early"
        for item_id in (after.scheduled - before.scheduled) & after.data.keys():
            guard = after.guard(item_id)
            assert guard is not None, f"{script} put {item_id!r} away without a guard"
            is_buried = item_id in after.buried
            assert guard.startswith(BURIED_GUARD if is_buried else DELAYED_GUARD)
            for kind in (b"lease", b"leased_by_session"):
                left_ms = self._witness.pttl(self._queue + b":" + kind + b":" + item_id)
                if is_buried:
                    assert left_ms == -1, f"{script} guarded {item_id!r} for {left_ms} ms"
                else:
                    until_ms = now_ms + left_ms
                    assert until_ms >= after.delayed[item_id] + _MARGIN_MS

    def _check_settling(self, script: str, before: RawKeys, after: RawKeys) -> None:
        """What we push onto main has a settling lease, which ends by itself, and no other."""
        entered = Counter(after.main) - Counter(before.main)
        for item_id in entered:
            self._books.pushed(item_id, "added" if script == "add" else "ours")
            self._books.single.add(item_id)
            if script == "add":
                continue
            assert after.is_settling(item_id), f"{script} pushed {item_id!r} without a lease"
            assert self._witness.pttl(self._queue + b":lease:" + item_id) > 0
            assert (item_id, "leased_by_session") not in after.leases
        # Somebody else had pushed it before, or it was left in a list without data.
        self._books.single -= after.listed_twice
        # It goes where somebody leases the item, or it leaves the queue.
        for item_id in {i for i in before.data if before.is_settling(i)} & {*after.main}:
            assert after.values(item_id), f"{script} ended the settling lease of {item_id!r}"


def _check_returns(script: str, before: RawKeys, after: RawKeys) -> None:
    """Each return by a clean is counted once; what is buried instead keeps its count."""
    entered, left = Counter(after.main), Counter(before.main)
    for item_id in before.data:
        known = before.returns.get(item_id, 0)
        expected = known + (entered[item_id] > left[item_id])
        assert after.returns.get(item_id, 0) == expected, f"{script} counted {item_id!r} wrongly"


def _check_live_work(script: str, before: RawKeys, after: RawKeys) -> None:
    """A clean leaves an item alone that a worker of either generation holds a lease on."""
    for item_id in before.data:
        workers = before.workers(item_id)
        if workers:
            assert after.workers(item_id) == workers, f"{script} changed the lease of {item_id!r}"
            working = item_id in before.processing
            assert not working or item_id in after.processing, f"{script} took {item_id!r} away"


class InterferingClock:
    """The machine's clock, but for sleeping: instead of that, `during` happens."""

    def __init__(self) -> None:
        self.during: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, _seconds: float) -> None:
        self.during()
