"""A worker as upstream's later versions are: the lease key is `lease`, the DEL of the data decides.

    {"socket": ..., "queue": ..., "book": ..., "stop": ..., "lease_s": ...}

Written by their README: neither PyPI nor npm serves them. peer_worker.py runs what those serve, and
says what a book is.
"""

import base64
import json
import os
import random
import sys
import time
from uuid import uuid4

import redis

_POLL_S = 1


def main() -> None:
    told = json.loads(sys.argv[1])
    queue, session, parent = told["queue"], uuid4().hex, os.getppid()
    main_list, processing = f"{queue}:queue", f"{queue}:processing"
    with (
        open(told["book"], "ab", buffering=0) as book,
        redis.Redis(unix_socket_path=told["socket"]) as db,
    ):

        def write(did: str, item_id: str, data: bytes, **more: object) -> None:
            entry = {"at": time.time(), "pid": os.getpid(), "did": did, "id": item_id}
            seen = {"data": base64.b64encode(data).decode()}
            book.write(json.dumps({**entry, **seen, **more}).encode() + b"\n")

        while not os.path.exists(told["stop"]) and os.getppid() == parent:
            popped = db.brpoplpush(main_list, processing, timeout=_POLL_S)
            if popped is None:
                continue
            item_id = popped.decode()
            data = db.get(f"{queue}:item:{item_id}")
            if data is None:
                db.lrem(processing, 0, item_id)
                continue
            db.set(f"{queue}:lease:{item_id}", session, ex=told["lease_s"])
            seconds, microseconds = db.time()
            write("leased", item_id, data, server_ms=seconds * 1000 + microseconds / 1000)
            time.sleep(random.uniform(0.0, 0.02))
            write("intends", item_id, data)
            won = db.delete(f"{queue}:item:{item_id}") == 1
            db.delete(f"{queue}:lease:{item_id}")
            db.lrem(processing, 0, item_id)
            write("completed" if won else "refused", item_id, data)


if __name__ == "__main__":
    main()
