"""Delayed items: adding, listing and promoting them, against adding as many that wait at once."""

from collections.abc import Iterator
from itertools import repeat

from benchmarks.filling import PAYLOAD, QUEUE, write_lines
from benchmarks.results import Sample, microseconds_each
from benchmarks.turn import Case, Turn

_KEY = f"{QUEUE}:delayed"


# A plain add makes two entries on the server: a key and an entry of the list. A delayed item has
# three keys, two with an expiry, and an entry of a sorted set. To promote it, the guards go with
# their expiries, and a settling lease with its own comes. `ls` reads the data key and both leases.
_LIMITS = {"add --delay": 4, "ls delayed": 4, "promotion (clean light)": 7}


def _delayed(turn: Turn) -> Iterator[Sample]:
    count = turn.size(100_000)
    client = turn.server.client
    lines = write_lines(turn.folder / "lines", repeat(PAYLOAD, count))
    turn.server.empty()
    plain_s = turn.rwq("add", stdin=lines).seconds
    assert client.llen(f"{QUEUE}:queue") == count
    turn.server.empty()
    runs = {"add --delay": turn.rwq("add", "--delay", "1h", stdin=lines)}
    assert client.zcard(_KEY) == count
    runs["ls delayed"] = turn.rwq("ls", "delayed", "-n", "0", "-o", "ids")
    # Halving the scores puts all due times into the past and keeps their order.
    client.zunionstore(_KEY, {_KEY: 0.5})
    runs["promotion (clean light)"] = turn.rwq("clean", "light", "--grace", "0")
    assert client.llen(f"{QUEUE}:queue") == count
    for title, run in runs.items():
        yield Sample(
            f"{count:,} delayed items: {title}",
            run.seconds,
            microseconds_each(count),
            _LIMITS[title],
            "plain add",
            plain_s,
            run,
        )
    turn.server.empty()


CASES = [Case("delayed", "delayed items", _delayed)]
