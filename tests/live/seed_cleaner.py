"""A cleaner as upstream's README describes it, by somebody who never heard of rwq.

    {"socket": ..., "queue": ..., "book": ..., "stop": ..., "do": "light" | "deep",
     "lease": "lease" | "leased_by_session"}

"The cleaning process finds items that exist, aren't in the main queue, and don't have a lease. And
then removes them from the processing queue, and pushes them to the main queue." A deep clean uses
KEYS to enumerate all the data items for checking, a light one takes the IDs from the processing
queue. It looks at the lease key of one generation, cleans again and again until it is told to stop,
and writes into its book what it pushed, and when by the server's clock.
"""

import json
import os
import sys
import time
from collections.abc import Iterable

import redis

_PAUSE_S = 0.05


class Cleaner:
    """One queue, cleaned one command after the other.

    Args:
        db: The server.
        queue: The queue's name.
        lease: The part of a lease key's name between the queue's and the ID.
    """

    def __init__(self, db: redis.Redis, queue: str, lease: str) -> None:
        self._db = db
        self._main = f"{queue}:queue".encode()
        self._processing = f"{queue}:processing".encode()
        self._item = f"{queue}:item:".encode()
        self._lease = f"{queue}:{lease}:".encode()

    def everything(self) -> Iterable[bytes]:
        """The IDs of all items, for a queue that has a plain name."""
        return [key[len(self._item) :] for key in self._db.keys(self._item + b"*")]

    def in_processing(self) -> Iterable[bytes]:
        """The IDs that a light clean looks at."""
        return self._db.lrange(self._processing, 0, -1)

    def clean(self, ids: Iterable[bytes]) -> Iterable[bytes]:
        """Make available again what is not; yields what was pushed."""
        for item_id in ids:
            if not self._db.exists(self._item + item_id):
                continue
            if self._db.lpos(self._main, item_id) is not None:
                continue
            if self._db.exists(self._lease + item_id):
                continue
            self._db.lrem(self._processing, 0, item_id)
            self._db.lpush(self._main, item_id)
            yield item_id


def main() -> None:
    told = json.loads(sys.argv[1])
    parent = os.getppid()
    with (
        open(told["book"], "ab", buffering=0) as book,
        redis.Redis(unix_socket_path=told["socket"]) as db,
    ):
        cleaner = Cleaner(db, told["queue"], told["lease"])
        while not os.path.exists(told["stop"]) and os.getppid() == parent:
            ids = cleaner.everything() if told["do"] == "deep" else cleaner.in_processing()
            for item_id in cleaner.clean(ids):
                seconds, microseconds = db.time()
                entry = {
                    "at": time.time(),
                    "pid": os.getpid(),
                    "did": "returned",
                    "id": item_id.decode(),
                    "server_ms": seconds * 1000 + microseconds / 1000,
                }
                book.write(json.dumps(entry).encode() + b"\n")
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
