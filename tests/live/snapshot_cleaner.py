"""The cleaners of redis-work-queue, one command after the other, and as a process.

    {"socket": ..., "queue": ..., "book": ..., "stop": ..., "do": "light" | "deep", "old": ...,
     "walk_s": ...}

Both read the lists once. Then they walk what they have read: for each ID they look only at the
lease key of their own generation, and return the item whatever has happened since. So their
generators can be stopped between any two of their commands.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator

import redis

from rwq_cli.core.keys import QueueKeys

_PAUSE_S = 0.3


class SnapshotCleaner:
    """A cleaner of one generation.

    Args:
        raw: The server.
        keys: The queue's keys.
        old: The generation 0.1, which has another name for leases, or a later one.
        on_look: Is told of each ID that has no lease by this generation's name.
        on_push: Is told of each ID before it is pushed.

    Attributes:
        pushed: The IDs that it has pushed.
        last_looked: The ID whose lease it looked at last.
        last_was_waiting: Whether the ID that it pushed last was in main already.
    """

    def __init__(
        self,
        raw: redis.Redis,
        keys: QueueKeys,
        *,
        old: bool,
        on_look: Callable[[bytes], None] = lambda _: None,
        on_push: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self._raw = raw
        self._keys = keys
        self._lease = keys.old_lease if old else keys.lease
        self._on_look = on_look
        self._on_push = on_push
        self.pushed: list[bytes] = []
        self.last_looked = b""
        self.last_was_waiting = False

    def light(self) -> Iterator[str]:
        """A light clean; it stops behind each command."""
        processing = self._raw.lrange(self._keys.processing, 0, -1)
        yield "snapshot"
        for item_id in processing:
            leased = self._is_leased(item_id)
            yield "exists"
            if leased:
                continue
            if self._raw.exists(self._keys.item(item_id)):
                self._push(item_id)
            else:
                self._raw.lrem(self._keys.processing, 0, item_id)
            yield "push"

    def deep(self) -> Iterator[str]:
        """A deep clean; it stops behind each command."""
        prefix = self._keys.item(b"")
        pipeline = self._raw.pipeline()
        pipeline.keys(prefix + b"*")
        pipeline.lrange(self._keys.main, 0, -1)
        items, main = pipeline.execute()
        yield "snapshot"
        waiting = set(main)
        for key in items:
            item_id = key[len(prefix) :]
            if item_id in waiting:
                continue
            leased = self._is_leased(item_id)
            yield "exists"
            if not leased:
                self._push(item_id)
                yield "push"

    def _is_leased(self, item_id: bytes) -> bool:
        self.last_looked = item_id
        if self._raw.exists(self._lease(item_id)):
            return True
        self._on_look(item_id)
        return False

    def _push(self, item_id: bytes) -> None:
        self._on_push(item_id)
        pipeline = self._raw.pipeline()
        pipeline.lpos(self._keys.main, item_id)
        pipeline.lrem(self._keys.processing, 0, item_id)
        pipeline.lpush(self._keys.main, item_id)
        place, *_ = pipeline.execute()
        self.pushed.append(item_id)
        self.last_was_waiting = place is not None


def main() -> None:
    told = json.loads(sys.argv[1])
    parent = os.getppid()
    looked_at: dict[bytes, float] = {}
    with (
        open(told["book"], "ab", buffering=0) as book,
        redis.Redis(unix_socket_path=told["socket"]) as db,
    ):
        cleaner = SnapshotCleaner(db, QueueKeys(told["queue"].encode()), old=told["old"])
        while not os.path.exists(told["stop"]) and os.getppid() == parent:
            # A look is dated by the moment before it was sent.
            before = time.time()
            for step in cleaner.light() if told["do"] == "light" else cleaner.deep():
                if step == "snapshot":
                    # As long as one needs for lists that are longer than those of a test.
                    time.sleep(random.uniform(0, told["walk_s"]))
                if step == "push" and cleaner.pushed:
                    item_id = cleaner.pushed.pop()
                    entry = {
                        "at": time.time(),
                        "pid": os.getpid(),
                        "did": "pushed again" if cleaner.last_was_waiting else "pushed",
                        "id": item_id.decode(),
                        "looked_at": looked_at[item_id],
                        "old": told["old"],
                    }
                    book.write(json.dumps(entry).encode() + b"\n")
                elif step == "exists":
                    looked_at[cleaner.last_looked] = before
                before = time.time()
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
