"""A process with `WorkQueue.work`, told what to do in one JSON argument, as `peer_worker.py` is.

    {"socket": ..., "queue": ..., "book": ..., "do": "chaos", "calm": ..., "stop": ...,
     "lease_s": ..., "death": ..., "seed": ...}

It is killed from outside at any moment, and kills itself before a call and between a call and its
reply. Whether an item was completed by a call without a reply is in doubt: `intends` is booked
before the call, and `completed` after the reply.
"""

import json
import os
import random
import sys
import threading
import time
from typing import Any

from rwq_cli.core import Job, RetryPolicy, Server, StopToken, WorkQueue, connect
from rwq_cli.core.server.link import Link
from rwq_cli.core.work.control import WorkEvent
from rwq_cli.core.work.job import Ended, Fate
from tests.live.peer_worker import DEATH_STATUS, Book, encoded

_FAILURE = 0.05


def die_at_calls(book: Book, calm: str, likelihood: float) -> None:
    """Let any call, or the wait for any reply, be the last thing that this process does."""
    send, read = Link.send, Link.read

    def may_die(before: str) -> None:
        if random.random() < likelihood and not os.path.exists(calm):
            book.write("dies", before=before)
            os._exit(DEATH_STATUS)

    def mortal_send(link: Link, requests: Any) -> int:
        may_die("call")
        return send(link, requests)

    def mortal_read(link: Link, request: Any) -> Any:
        may_die("reply")
        return read(link, request)

    Link.send, Link.read = mortal_send, mortal_read  # type: ignore[method-assign]


def main() -> None:
    told = json.loads(sys.argv[1])
    random.seed(told["seed"])
    book = Book(told["book"])
    calm, stop = told["calm"], StopToken()
    queue = WorkQueue(connect(Server(f"unix://{told['socket']}")), told["queue"])
    die_at_calls(book, calm, told["death"])

    def watch() -> None:
        parent = os.getppid()
        while not os.path.exists(told["stop"]) and os.getppid() == parent:
            time.sleep(0.05)
        stop.set()

    def handle(job: Job) -> None:
        item_id, data = job.item_id.decode(), encoded(job.data)
        book.write("leased", id=item_id, data=data)
        time.sleep(random.uniform(0.0, 0.02))
        if random.random() < _FAILURE and not os.path.exists(calm):
            raise ValueError("it failed")
        book.write("intends", id=item_id, data=data)

    def note(event: WorkEvent) -> None:
        if isinstance(event, Ended):
            item_id, data = event.job.item_id.decode(), encoded(event.job.data)
            did = "refused" if event.fate is Fate.LOST else event.fate.value
            book.write(did, id=item_id, data=data)

    threading.Thread(target=watch, daemon=True).start()
    queue.work(
        handle,
        concurrency=2,
        for_s=told["lease_s"],
        policy=RetryPolicy(retries=20, backoff_s=0.2),
        stop=stop,
        on_event=note,
    )


if __name__ == "__main__":
    main()
