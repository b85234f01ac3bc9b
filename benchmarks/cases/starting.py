"""Start-up: whole processes against `python -c 'import redis'`."""

import sys
from collections.abc import Iterator

from benchmarks.processes import Run, timed
from benchmarks.results import MILLISECONDS, Sample
from benchmarks.turn import Case, Turn


def _startup(turn: Turn) -> Iterator[Sample]:
    item_id = turn.fill(waiting=100)["waiting"][0].decode()
    base_s = timed([sys.executable, "-c", "import redis"]).seconds
    for word, limit in (("--version", 0.35), ("--help", 0.7)):
        run = timed([str(turn.program.executable), word])
        yield _sample(f"rwq {word}", run, limit, base_s)
    for title, words, limit in (
        ("rwq stats --fast -o json", ["stats", "--fast", "-o", "json"], 0.95),
        ("rwq show ID -o json", ["show", item_id, "-o", "json"], 1.2),
        ("rwq touch ID", ["touch", item_id], 1.2),
        ("rwq ls, a table", ["ls", "-o", "table"], 1.2),
    ):
        yield _sample(title, turn.rwq(*words, statuses=(0, 1)), limit, base_s)


def _sample(title: str, run: Run, limit: float, base_s: float) -> Sample:
    return Sample(
        f"start-up: {title}", run.seconds, MILLISECONDS, limit, "import redis", base_s, run
    )


CASES = [Case("startup", "starting", _startup, rounds=20)]
