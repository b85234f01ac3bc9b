"""`mv --follow` to another server, killed again and again, while workers run on both.

Producers go on, cleans run on both servers, and the mover is killed while items are in transit. In
the end each item stands once in the books of the commands that ran for it, and nothing is left.
"""

import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from redis import Redis

from tests.conftest import Foreign, StartServer
from tests.driver import Rwq, until
from tests.long import usual

KILLS = usual(3, long=60)
_ITEMS = 150
_LEFT = (":lease:", ":leased_by_session:", ":clean-lock")


def test_each_item_is_worked_once_while_its_queue_moves(
    rwq: Rwq, foreign: Foreign, start_server: StartServer, tmp_path: Path
) -> None:
    there = start_server()
    urls = (rwq.variables["RWQ_URL"], there.url)
    books = [tmp_path / f"book-{side}" for side in range(2)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    others = []
    for url, book in zip(urls, books, strict=True):
        book.touch()
        script = f'echo "$RWQ_ID" >>{book}; sleep 0.0{random.randrange(1, 5)}'
        for words in (
            ("work", "-j", "2", "--for", "60s", "--", "sh", "-c", script),
            ("clean", "deep", "--every", "0.2s", "--grace", "0.2s"),
        ):
            others.append(rwq.start(*words, variables={"RWQ_URL": url}, **quiet))
    added: list[bytes] = []
    move = ("mv", "--all", "--to", "jobs", "--to-url", there.url, "--yes")
    with there.client() as raw:
        sides: tuple[Redis, Redis] = (foreign.raw, raw)

        def in_transit() -> list[int]:
            return [side.zcard("jobs:buried") for side in sides]

        def is_empty() -> bool:
            return not any(
                side.llen("jobs:queue") + side.llen("jobs:processing") + side.zcard("jobs:buried")
                for side in sides
            )

        for number in range(KILLS):
            ids = [b"%d-%d" % (number, each) for each in range(_ITEMS)]
            foreign.waiting(*ids)
            added += ids
            # Of the one before.
            left_over = in_transit()
            mover = rwq.start(*move, "--follow", **quiet)
            deadline = time.monotonic() + 20
            while in_transit() in ([0, 0], left_over) and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(random.uniform(0, 0.02))
            mover.kill()
            mover.wait()
        until(lambda: rwq(*move).code in (0, 1, 3) and is_empty())
        for process in others:
            process.terminate()
            process.wait()
        left = [
            key
            for side in sides
            for key in side.keys("*")
            if not any(map(key.decode().__contains__, _LEFT))
        ]
    worked = [book.read_text().split() for book in books]
    assert Counter(worked[0] + worked[1]) == Counter(each.decode() for each in added)
    assert worked[1], "nothing was moved"
    assert left == []
