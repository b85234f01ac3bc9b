"""Writes `docs/picture-dark.svg` and `docs/picture-light.svg`: a stuck item is found and returned.

    python -m docs.picture

Each command runs as a process on a terminal, with a server and a home of its own.
"""

import tempfile
from pathlib import Path

import redis

from docs.screens import THEMES, Screen, age, await_age, picture, shown
from rwq_cli.core.keys import QueueKeys
from tests.servers import running_server

COLUMNS = 84
LINES = ("rwq leases", "rwq show 'resize dog.png'", "rwq clean light")
_QUEUE = "images"


def fill(raw: redis.Redis) -> None:
    """Three workers have taken an item; one of them is dead."""
    keys = QueueKeys(_QUEUE.encode())
    holders = {
        "resize dog.png": None,
        "resize cat.png": "worker-3@render-02:4711",
        "resize eel.png": "rwq:ann@ops1:4711",
    }
    for number, (item_id, holder) in enumerate(holders.items()):
        raw.set(keys.item(item_id.encode()), item_id)
        raw.lpush(keys.processing, item_id)
        if holder:
            raw.set(keys.lease(item_id.encode()), holder, ex=240 + 20 * number)
    age(raw, f"{_QUEUE}:item:*")


def main() -> None:
    """Write the picture in both themes."""
    with tempfile.TemporaryDirectory() as home, running_server() as server:
        with server.client() as raw:
            await_age(raw)
            fill(raw)
        variables = {"RWQ_URL": server.url, "RWQ_QUEUE": _QUEUE}
        lines = [
            (line, shown(Screen("picture", line), Path(home), COLUMNS, variables)) for line in LINES
        ]
    for name, theme in THEMES.items():
        drawn = picture("picture", lines, COLUMNS, theme)
        Path(__file__).with_name(f"picture-{name}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
