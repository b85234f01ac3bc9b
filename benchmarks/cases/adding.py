"""Adding many items."""

from collections.abc import Iterator
from itertools import repeat

from benchmarks.filling import PAYLOAD, QUEUE, add_command, new_ids, pipe_command, write_lines
from benchmarks.processes import timed
from benchmarks.results import MIB, SECONDS, Sample
from benchmarks.turn import Case, Turn

_LINE = b'{"data":' + PAYLOAD + b"}"


def _bulk_add(turn: Turn) -> Iterator[Sample]:
    """JSON lines from stdin against valkey-cli --pipe of ready-made SET and LPUSH."""
    count = turn.size(1_000_000)
    lines = write_lines(turn.folder / "lines", repeat(_LINE, count))
    ready = turn.folder / "ready"
    with ready.open("wb") as file:
        file.writelines(map(add_command, new_ids(count)))
    turn.server.empty()
    pipe_s = timed(pipe_command(turn.server), stdin=ready).seconds
    peaks = []
    for title, options, limit in (
        ("duplicate-checked", [], 1.7),
        ("--unchecked", ["--unchecked"], 1.3),
    ):
        turn.server.empty()
        run = turn.rwq("add", "--format", "jsonl", *options, stdin=lines)
        assert turn.server.client.llen(f"{QUEUE}:queue") == count
        peaks.append(run.peak_mib)
        yield Sample(
            f"add {count:,} JSON lines, {title}",
            run.seconds,
            SECONDS,
            limit,
            "valkey-cli --pipe",
            pipe_s,
            run,
        )
    yield Sample(f"add {count:,} JSON lines, peak memory", max(peaks), MIB, 80)
    turn.server.empty()


def _add_ten_million(turn: Turn) -> Iterator[Sample]:
    """Memory does not grow with the input."""
    peaks = []
    for full_size in (1_000_000, 10_000_000):
        count = turn.size(full_size)
        lines = write_lines(turn.folder / "lines", repeat(_LINE, count))
        turn.server.empty()
        peaks.append(turn.rwq("add", "--format", "jsonl", stdin=lines).peak_mib)
    yield Sample(
        f"add {count:,} JSON lines, peak memory", peaks[1], MIB, 1.1, "of a tenth", peaks[0]
    )
    turn.server.empty()


CASES = [
    Case("add", "adding 1,000,000", _bulk_add),
    Case("add-many", "adding 10,000,000", _add_ten_million, rounds=1, own_longest_call=True),
]
