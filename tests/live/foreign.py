"""What upstream's programs do to a queue, one command at a time.

Each program is a generator that yields after every command that it sends: the generator is the
program's counter, `next` is its next command, and to drop it is its crash. `Books` is told what a
program itself would have believed: that it added an item, or that its DEL deleted one.

Two generations differ in the lease key and in what decides a complete: 0.1 (`leased_by_session`)
goes by its LREM, later versions (`lease`) by their DEL.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import redis

Program = Iterator[object]


@dataclass(slots=True)
class Books:
    """Who must exist, by what every program was told."""

    live: dict[bytes, bytes] = field(default_factory=dict)
    completed: int = 0
    removed: int = 0
    added: int = 0
    # ID to how often it was pushed onto main, and what happened to it last: `ours` if we pushed it,
    # and its settling lease is still there.
    pushes: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    # What we pushed, leaving one entry of it in the two lists, and nobody has pushed since.
    single: set[bytes] = field(default_factory=set)
    # By reason, how often a cleaner pushed an item that was waiting already.
    second_pushes: Counter[str] = field(default_factory=Counter)

    def pushed(self, item_id: bytes, by: str) -> None:
        """It was pushed onto main."""
        self.pushes[item_id] = (self.pushes.get(item_id, (0, ""))[0] + 1, by)
        self.single.discard(item_id)

    def unsettled(self, item_id: bytes, why: str) -> None:
        """A lease of it ended; it may have been a settling lease."""
        if item_id in self.pushes:
            self.pushes[item_id] = (self.pushes[item_id][0], why)

    def push_again(self, item_id: bytes, seen: tuple[int, str] | None) -> None:
        """A cleaner pushes an item that is waiting; it saw no lease when it stood so with it."""
        last = self.pushes.get(item_id)
        if last != seen:
            self.second_pushes["pushed between its look and its push"] += 1
            return
        by = last[1] if last else "by hand"
        assert by != "ours", f"a cleaner saw no lease of {item_id!r}, which we pushed"
        self.second_pushes[by] += 1

    def return_another_entry(self, item_id: bytes) -> None:
        """A cleaner of 0.1 pushes an item that is waiting: what it has taken off processing was a
        second entry, so that it waits twice after it as before.

        No lease of ours keeps it from that, whatever it has seen: a settling lease is not under the
        name that it looks at. So what can be asserted is that the second entry is not ours: that
        our push has taken all others away. See docs/adr/0003-settling-leases.md.
        """
        assert item_id not in self.single, f"we pushed {item_id!r} and left it in processing"
        self.second_pushes["0.1 returned another entry of it"] += 1

    def add(self, item_id: bytes, data: bytes) -> None:
        self.added += item_id not in self.live
        self.live[item_id] = data

    def complete(self, item_id: bytes) -> None:
        """One complete won this life of the item."""
        assert item_id in self.live, f"{item_id!r} was completed twice in one life"
        del self.live[item_id]
        self.completed += 1

    def remove(self, item_id: bytes) -> None:
        """We removed it."""
        del self.live[item_id]
        self.removed += 1


@dataclass(frozen=True, slots=True)
class Upstream:
    """A client of upstream's, of either generation."""

    client: redis.Redis
    queue: bytes
    old: bool
    books: Books

    def key(self, kind: bytes, item_id: bytes | None = None) -> bytes:
        key = self.queue + b":" + kind
        return key if item_id is None else key + b":" + item_id

    def lease_key(self, item_id: bytes) -> bytes:
        return self.key(b"leased_by_session" if self.old else b"lease", item_id)

    def produce(self, item_id: bytes, data: bytes) -> Program:
        """Add an item. 0.1 does it in one MULTI and looks for no duplicate."""
        if self.old:
            pipeline = self.client.pipeline(transaction=True)
            pipeline.set(self.key(b"item", item_id), data)
            pipeline.lpush(self.key(b"queue"), item_id)
            pipeline.execute()
            self.books.add(item_id, data)
            self.books.pushed(item_id, "upstream")
            return
        if not self.client.setnx(self.key(b"item", item_id), data):
            return
        self.books.add(item_id, data)
        yield
        self._push(item_id)

    def work(self) -> Program:
        """Lease the next item and complete it."""
        item_id = self.client.rpoplpush(self.key(b"queue"), self.key(b"processing"))
        if item_id is None:
            return
        yield
        data = self.client.get(self.key(b"item", item_id))
        assert data == self.books.live.get(item_id)
        if data is None and not self.old:
            return
        yield
        self.client.execute_command("SETEX", self.lease_key(item_id), 1000, b"session")
        yield
        if self.old:
            # It believes that it won when its LREM removed something, whatever its DEL says.
            if not self.client.lrem(self.key(b"processing"), 0, item_id):
                return
            yield
            self._delete_data(item_id)
        else:
            self._delete_data(item_id)
            yield
            self.client.lrem(self.key(b"processing"), 0, item_id)
        yield
        self._end_lease(item_id)

    def finish(self, item_id: bytes) -> Program:
        """Complete an item that this program holds no lease of: delayed or buried, perhaps.

        By the README: the data, its own lease key, its entry in processing; for 0.1 this is what a
        program of somebody's own does.
        """
        self._delete_data(item_id)
        yield
        self._end_lease(item_id)
        yield
        self.client.lrem(self.key(b"processing"), 0, item_id)
        yield

    def _delete_data(self, item_id: bytes) -> None:
        if self.client.delete(self.key(b"item", item_id)):
            self.books.complete(item_id)

    def _push(self, item_id: bytes) -> None:
        self.client.lpush(self.key(b"queue"), item_id)
        self.books.pushed(item_id, "upstream")

    def _end_lease(self, item_id: bytes) -> None:
        """By its key alone, whoever's it is by now."""
        self.client.delete(self.lease_key(item_id))
        self.books.unsettled(item_id, "its lease was deleted by who completed its namesake")

    def light_clean(self) -> Program:
        """Clean what is in processing, and in 0.1 what an earlier cleaner had in hand."""
        in_processing = self.client.lrange(self.key(b"processing"), 0, -1)
        yield
        for item_id in in_processing:
            if self.old:
                yield from self._clean_by_0_1(item_id)
            else:
                yield from self._clean_one(item_id)
        if not self.old:
            return
        forgotten = self.client.lrange(self.key(b"cleaning"), 0, -1)
        yield
        for item_id in forgotten:
            yield from self._clean_forgotten(item_id)

    def deep_clean(self) -> Program:
        """Clean all data keys, as the README of later versions says; 0.1 cannot."""
        assert not self.old
        ids = self._ids()
        yield
        for item_id in ids:
            yield from self._clean_one(item_id)

    def _ids(self) -> list[bytes]:
        prefix = self.key(b"item", b"")
        keys: list[bytes] = self.client.keys("*")
        return [key[len(prefix) :] for key in keys if key.startswith(prefix)]

    def snapshot_clean(self, *, deep: bool) -> Iterator[str]:
        """Clean as upstream's own code does it; stops behind each command.

        It reads the lists once, and walks what it has read: for each ID it looks only at the lease
        key of its own generation. 0.1, which has no deep clean, returns only what it has removed
        from processing; later versions return the item whatever has happened since.
        """
        if deep and not self.old:
            waiting = self.client.lrange(self.key(b"queue"), 0, -1)
            walked = [item_id for item_id in self._ids() if item_id not in waiting]
        else:
            walked = self.client.lrange(self.key(b"processing"), 0, -1)
        yield "snapshot"
        for item_id in walked:
            leased = self.client.exists(self.lease_key(item_id))
            seen = self.books.pushes.get(item_id)
            yield "exists"
            if leased:
                continue
            step = self.client.pipeline()
            step.lrem(self.key(b"processing"), 0, item_id)
            if self.old:
                is_returned = self.client.lrem(self.key(b"processing"), 0, item_id)
            else:
                is_returned = deep or self.client.exists(self.key(b"item", item_id))
            if is_returned:
                is_waiting = self.client.lpos(self.key(b"queue"), item_id) is not None
                if is_waiting and self.old:
                    self.books.return_another_entry(item_id)
                elif is_waiting:
                    self.books.push_again(item_id, seen)
                self.books.pushed(item_id, "upstream")
                step.lpush(self.key(b"queue"), item_id)
            step.execute()
            yield "push"

    def _clean_one(self, item_id: bytes) -> Program:
        """By the README: it exists, is not in main, has no lease: off processing, onto main."""
        if not self.client.exists(self.key(b"item", item_id)):
            return
        yield
        if self.client.lpos(self.key(b"queue"), item_id) is not None:
            return
        yield
        if self.client.exists(self.lease_key(item_id)):
            return
        yield
        self.client.lrem(self.key(b"processing"), 0, item_id)
        yield
        self._push(item_id)
        yield

    def _clean_by_0_1(self, item_id: bytes) -> Program:
        if self.client.exists(self.lease_key(item_id)):
            return
        yield
        self.client.lpush(self.key(b"cleaning"), item_id)
        yield
        removed = self.client.lrem(self.key(b"processing"), 0, item_id)
        if removed and self.client.lpos(self.key(b"queue"), item_id) is not None:
            self.books.return_another_entry(item_id)
        yield
        if removed:
            self._push(item_id)
            yield
        self.client.lrem(self.key(b"cleaning"), 0, item_id)
        yield

    def _clean_forgotten(self, item_id: bytes) -> Program:
        looks: tuple[Callable[[], bool], ...] = (
            lambda: not self.client.exists(self.lease_key(item_id)),
            lambda: self.client.lpos(self.key(b"queue"), item_id) is None,
            lambda: self.client.lpos(self.key(b"processing"), item_id) is None,
        )
        lost = True
        for look in looks:
            lost = lost and look()
            yield
        if lost:
            self._push(item_id)
            yield
        self.client.lrem(self.key(b"cleaning"), 0, item_id)
        yield
