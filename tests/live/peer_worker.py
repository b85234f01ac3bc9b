"""A process of redis-work-queue 0.1.5 from PyPI, told what to do in one JSON argument.

    {"socket": ..., "queue": ..., "book": ..., "do": "add" | "lease" | "work" | "complete" | "clean"
     | "chaos", ...}

`peer_worker.mjs` does the same with the package from npm. What it did goes into its book, a file of
JSON lines, each written by a single call once the library had returned.

In a chaos it dies and stalls between upstream's single commands. A complete is booked before it
begins and after it returned; death comes only before a command, so never between the last command
of a complete and its entry. It does not stall between the LREM and the DEL of a complete: 0.1.5
reports success by the LREM alone, and relies on its lease to last until the DEL.
"""

import base64
import json
import os
import random
import sys
import time
from typing import Any

import redis
from redis_work_queue import Item, KeyPrefix, WorkQueue

# Before which command of an item's way to die, and how likely. EXEC is the one after the LREM.
_DEATHS = {"BRPOPLPUSH": 0.01, "GET": 0.03, "SETEX": 0.03, "LREM": 0.03, "EXEC": 0.04}
DEATH_STATUS = 9
_STALL = 0.01
_OUTLIVE_LEASE = 0.04
_POLL_S = 1


class Book:
    """An append-only file of what happened."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, did: str, **more: object) -> None:
        entry = {"at": time.time(), "pid": os.getpid(), "did": did, **more}
        os.write(self._file, json.dumps(entry).encode() + b"\n")


class MortalRedis(redis.Redis):
    """A client that asks before every command whether it may go on."""

    def meet(self, before_command: Any) -> None:
        self._before_command = before_command

    def execute_command(self, *words: Any, **options: Any) -> Any:
        self._before_command(words[0])
        return super().execute_command(*words, **options)

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        pipeline = super().pipeline(transaction, shard_hint)
        execute = pipeline.execute

        def execute_if_alive(*words: Any, **options: Any) -> Any:
            self._before_command("EXEC")
            return execute(*words, **options)

        pipeline.execute = execute_if_alive
        return pipeline


class Fate:
    """Decides before each command of a chaos whether the process lives."""

    def __init__(self, book: Book, calm: str, lease_s: int) -> None:
        self._book = book
        self._calm = calm
        self._lease_s = lease_s

    def is_calm(self) -> bool:
        return os.path.exists(self._calm)

    def before_command(self, command: str) -> None:
        if self.is_calm():
            return
        if random.random() < _DEATHS.get(command, 0.0):
            self._book.write("dies", before=command)
            os._exit(DEATH_STATUS)
        if command != "EXEC" and random.random() < _STALL:
            self._book.write("stalls", before=command)
            time.sleep(self._lease_s + random.uniform(0.2, 1.5))

    def while_working(self) -> None:
        if not self.is_calm() and random.random() < _OUTLIVE_LEASE:
            self._book.write("stalls", before="complete")
            time.sleep(self._lease_s + random.uniform(0.2, 1.5))
        time.sleep(random.uniform(0.0, 0.02))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def complete(queue: WorkQueue, db: redis.Redis, item: Item, book: Book) -> None:
    book.write("intends", id=item.id(), data=encoded(item.data()))
    won = queue.complete(db, item)
    book.write("completed" if won else "refused", id=item.id(), data=encoded(item.data()))


def chaos(queue: WorkQueue, db: MortalRedis, book: Book, told: dict[str, Any]) -> None:
    random.seed(told["seed"])
    fate = Fate(book, told["calm"], told["lease_s"])
    db.meet(fate.before_command)
    parent = os.getppid()
    while not os.path.exists(told["stop"]) and os.getppid() == parent:
        item = queue.lease(db, told["lease_s"], timeout=_POLL_S)
        if item is not None:
            book.write("leased", id=item.id(), data=encoded(item.data()))
            fate.while_working()
            complete(queue, db, item, book)


def main() -> None:
    told = json.loads(sys.argv[1])
    book = Book(told["book"])
    db = MortalRedis(unix_socket_path=told["socket"])
    db.meet(lambda _command: None)
    queue = WorkQueue(KeyPrefix(told["queue"]))
    match told["do"]:
        case "add":
            for item_id, data in told["items"]:
                queue.add_item(db, Item(base64.b64decode(data), item_id))
        case "lease" | "work":
            while (item := queue.lease(db, told["lease_s"], block=False)) is not None:
                book.write("leased", id=item.id(), data=encoded(item.data()))
                if told["do"] == "work":
                    complete(queue, db, item, book)
        case "complete":
            for item_id in told["ids"]:
                complete(queue, db, Item(b"", item_id), book)
        case "clean":
            queue.light_clean(db)
        case "chaos":
            chaos(queue, db, book, told)


if __name__ == "__main__":
    main()
