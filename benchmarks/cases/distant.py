"""Over a line of 100 ms: how often each command waits for it."""

from collections.abc import Iterator

from benchmarks.filling import PAYLOAD, QUEUE, write_lines
from benchmarks.line import long_line
from benchmarks.results import Sample, Unit
from benchmarks.turn import Case, Turn

_LATENCY_S = 0.1
_TRIPS = Unit("round trips", digits=0)
_MANY = 100_000
_FEW = 50
# What is waited for at most, whatever the number of items.
_MANY_LIMIT = 100
# Each command beside its limit on a short queue; all of them leave the queue as they found it, or
# the next fill makes it again.
_ON_FEW = (
    (4, ("stats",)),
    (4, ("queues",)),
    (4, ("check",)),
    (5, ("clean", "light", "--grace", "0")),
    (10, ("clean", "deep", "--grace", "0")),
    (10, ("doctor", "--grace", "0")),
    (10, ("export",)),
    (10, ("mv", "--all", "--to", "other", "--yes")),
    (10, ("rm", "--all", "--yes")),
    (10, ("purge", "--yes")),
)


def _few(turn: Turn) -> Iterator[Sample]:
    with long_line(turn.server.socket, turn.folder / "line", _LATENCY_S) as line:
        for limit, words in _ON_FEW:
            turn.fill(waiting=_FEW)
            line.reset()
            turn.rwq(*words, url=f"unix://{turn.folder / 'line'}", statuses=(0, 1))
            title = f"{' '.join(words)} of {_FEW}, over {_LATENCY_S * 1000:.0f} ms"
            yield Sample(title, line.round_trips, _TRIPS, limit)


def _many(turn: Turn) -> Iterator[Sample]:
    count = turn.size(_MANY)
    lines = write_lines(
        turn.folder / "lines", (b'{"data":{"n":%d,"d":%b}}' % (n, PAYLOAD) for n in range(count))
    )
    ids = turn.folder / "ids"
    exported = turn.folder / "exported"
    socket = turn.folder / "line"
    # In this order each command finds what the one before it left.
    steps = (
        ("add --format jsonl", ("add", "--format", "jsonl"), lines, None),
        ("ls -n 0 -o ids", ("ls", "-n", "0", "-o", "ids"), None, ids),
        ("ls --where n>=0 -o ids", ("ls", "--where", "n>=0", "-n", "0", "-o", "ids"), None, None),
        ("show -", ("show", "-", "-o", "jsonl"), ids, None),
        ("stats --deep", ("stats", "--deep"), None, None),
        ("export", ("export",), None, exported),
        ("bury --all", ("bury", "--all"), None, None),
        ("kick --all", ("kick", "--all"), None, None),
        ("lease -n", ("lease", "-n", str(count), "-o", "ids"), None, ids),
        ("touch -", ("touch", "-"), ids, None),
        ("release -", ("release", "-", "--force", "--yes"), ids, None),
        ("rm --all", ("rm", "--all", "--yes"), None, None),
        ("undo", ("undo", "--yes"), None, None),
        ("doctor", ("doctor", "--grace", "0"), None, None),
        ("clean deep", ("clean", "deep", "--grace", "0"), None, None),
        ("mv --all", ("mv", "--all", "--to", "other", "--yes"), None, None),
        ("import", ("import", str(exported)), None, None),
        ("lease -n again", ("lease", "-n", str(count), "-o", "ids"), None, ids),
        ("complete -", ("complete", "-"), ids, None),
        ("import again", ("import", str(exported)), None, None),
        ("purge", ("purge", "--yes"), None, None),
    )
    turn.server.empty()
    with long_line(turn.server.socket, socket, _LATENCY_S) as line:
        for title, words, stdin, stdout in steps:
            line.reset()
            turn.rwq(*words, stdin=stdin, stdout=stdout, url=f"unix://{socket}")
            if "again" not in title:
                title = f"{title} of {count:,}, over {_LATENCY_S * 1000:.0f} ms"
                yield Sample(title, line.round_trips, _TRIPS, _MANY_LIMIT)
    assert turn.server.client.exists(f"{QUEUE}:queue") == 0
    turn.server.empty()


CASES = [
    Case("distant-few", f"a queue of {_FEW} over a line of 100 ms", _few, rounds=1),
    Case("distant", f"{_MANY:,} items over a line of 100 ms", _many, rounds=1),
]
