"""Takes the screenshot of `rwq top`: `python docs/top.py` writes docs/top.svg.

A real run on a throwaway server: two workers are slower than what is added, one is faster, and one
has died.
"""

import asyncio
import io
import os
import random
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import uuid4

from rwq_cli.cli.settings import Settings
from rwq_cli.core import NewItem, Server, WorkQueue, connect
from rwq_cli.environment import Environment
from rwq_cli.local.server import throwaway
from rwq_cli.top.app import TopApp
from rwq_cli.top.session import Session

# Queues, with how many items are added and taken in a tenth of a second.
_TRAFFIC = {"images": (3, 4), "mail:in": (4, 3), "mail:out": (1, 2), "reports": (0, 0)}
_SECONDS = 40.0
_EVERY_S = 2.0


def _fill(url: str) -> None:
    for name in _TRAFFIC:
        _add(WorkQueue(connect(Server(url)), name), 40 * len(name))
    mail = WorkQueue(connect(Server(url)), "mail:in")
    # Their worker has died, theirs is alive, and these have no reader.
    list(mail.lease_many(2, for_s=0.1))
    list(mail.lease_many(5, for_s=600))
    ids = [item.item_id for item in mail.lease_many(3)]
    list(mail.bury_many(ids, reason=b"no such address"))
    reports = WorkQueue(connect(Server(url)), "reports")
    ids = [item.item_id for item in reports.lease_many(4)]
    list(reports.release_many(ids, delay_s=3600))


def _add(queue: WorkQueue, count: int) -> None:
    list(queue.add_many(NewItem(uuid4().hex.encode(), b"x") for _ in range(count)))


def _work(url: str, stop: threading.Event) -> None:
    queues = {name: WorkQueue(connect(Server(url)), name) for name in _TRAFFIC}
    while not stop.wait(0.1):
        for name, (added, taken) in _TRAFFIC.items():
            _add(queues[name], random.randint(0, 2 * added))
            leased = queues[name].lease_many(random.randint(0, 2 * taken))
            list(queues[name].complete_many([item.item_id for item in leased]))


async def _run(app: TopApp) -> str:
    async with app.run_test(size=(112, 11)) as pilot:
        await pilot.pause(_SECONDS)
        return app.export_screenshot(title="rwq top")


def main() -> None:
    """Write the screenshot."""
    with throwaway(os.environ) as server, TemporaryDirectory() as config:
        server.ensure_running()
        file = Path(config) / "rwq" / "config.toml"
        file.parent.mkdir()
        file.write_text(f'[contexts.shop]\nurl = "{server.url}"\ncolor = "green"\n')
        file.chmod(0o600)
        _fill(server.url)
        stop = threading.Event()
        worker = threading.Thread(target=_work, args=(server.url, stop))
        worker.start()
        try:
            streams = (io.BytesIO(), io.BytesIO(), io.BytesIO())
            environment = Environment({**os.environ, "XDG_CONFIG_HOME": config}, *streams)
            settings = Settings(environment, {"context": "shop", "color": "always"})
            session = Session(settings, _EVERY_S, cast(Any, None))
            # Where the server was is of no interest.
            session.server[1] = "redis://db1:6379/0", None
            picture = asyncio.run(_run(TopApp(session)))
        finally:
            stop.set()
            worker.join()
    Path(__file__).with_suffix(".svg").write_text(picture)


if __name__ == "__main__":
    main()
