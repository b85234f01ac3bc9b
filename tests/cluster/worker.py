"""A program that leases and completes until a file appears, and prints what it did.

Each line is `done ID` for a completed item, `again ID` for one that somebody else had completed,
and `doubt` for a call whose reply was lost.
"""

import sys
from pathlib import Path

from rwq_cli.core import Server, ServerError, Status, WorkQueue, connect


def work(queue: WorkQueue, stop: Path) -> None:
    while not stop.exists():
        try:
            items = list(queue.lease_many(3, for_s=2.0, wait_s=0.2))
            for item in items:
                (outcome,) = queue.complete_many([item.item_id])
                word = "done" if outcome.status is Status.COMPLETED else "again"
                print(word, item.item_id.decode(), flush=True)
        except ServerError as error:
            if not error.in_doubt:
                raise
            print("doubt", flush=True)


if __name__ == "__main__":
    work(WorkQueue(connect(Server(sys.argv[1])), sys.argv[2]), Path(sys.argv[3]))
