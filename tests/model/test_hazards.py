"""What `docs/upstream.md` warns of happens: each listing of hazards.md is played on a server."""

from pathlib import Path
from typing import Any

import pytest
import redis

_PAGE = Path(__file__).with_name("hazards.md").read_text("utf-8")
_WAITS = ("SET jobs:item:a data", "LPUSH jobs:queue a")
_ABANDONED = ("SET jobs:item:a data", "LPUSH jobs:processing a")
_LEASED = (*_ABANDONED, "SETEX jobs:lease:a 60 session-1")
# By its heading, what there is at first.
BEGINNINGS = {
    "Both generations on one queue: two workers, two winners": _LEASED,
    "A worker that stalls past its lease: the item runs twice at once": _LEASED,
    "A worker that stalls past its lease: it deletes a new item with the same ID": _LEASED,
    "A clean between a pop and its lease": _WAITS,
    "Two cleaners at once: the item waits twice": _ABANDONED,
    "A deep clean beside a producer: the item waits twice": (),
    "0.1 runs an item that is finished, with empty data": _WAITS,
    "The light clean for Node.js returns nothing": _ABANDONED,
}


@pytest.mark.parametrize("heading", BEGINNINGS)
def test_a_server_replies_what_the_page_shows(raw: redis.Redis, heading: str) -> None:
    for line in BEGINNINGS[heading]:
        raw.execute_command(*line.split())
    _, _, section = _PAGE.partition(f"\n## {heading}\n")
    _, _, listing = section.partition("```text\n")
    for line in listing.partition("```")[0].splitlines():
        words, reply = line[14:62].split(), line[62:]
        if words[-1] == "ends)":
            assert raw.delete(words[0].strip("("))
        else:
            assert _shown(words[0], raw.execute_command(*words)) == reply, line


def test_the_page_shows_nothing_else() -> None:
    assert _PAGE.count("```text\n") == len(BEGINNINGS)


def _shown(command: str, reply: Any) -> str:
    match reply:
        case None:
            return "(nil)"
        case bool():
            return "1" if command == "SETNX" else "OK"
        case bytes():
            return reply.decode() if len(reply) < 3 else "its data"
        case list():
            return " ".join(each.decode() for each in reply) or "(empty)"
        case _:
            return str(reply)
