"""Items that change places: release, bury, kick, export and import."""

import random
from collections.abc import Iterator

from benchmarks.filling import QUEUE, write_lines
from benchmarks.results import SECONDS, Sample
from benchmarks.turn import RAW_WALK, Case, Turn


def _release_all(turn: Turn) -> Iterator[Sample]:
    waiting, abandoned = turn.size(1_000_000), turn.size(200_000)
    turn.fill(waiting=waiting, abandoned=abandoned)
    walk_s = turn.raw_walk_s()
    run = turn.rwq("release", "--all")
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting + abandoned
    title = f"release --all: {abandoned:,} abandoned, {waiting:,} waiting"
    yield Sample(title, run.seconds, SECONDS, 22, RAW_WALK, walk_s, run)


def _bury(turn: Turn) -> Iterator[Sample]:
    waiting, chosen = turn.size(1_000_000), turn.size(100_000)
    made = turn.fill(waiting=waiting)
    walk_s = turn.raw_walk_s()
    ids = write_lines(turn.folder / "ids", random.Random(1).sample(made["waiting"], chosen))
    run = turn.rwq("bury", "-", stdin=ids)
    assert turn.server.client.zcard(f"{QUEUE}:buried") == chosen
    title = f"bury {chosen:,} of {waiting:,} waiting, at random"
    yield Sample(title, run.seconds, SECONDS, 15, RAW_WALK, walk_s, run)


def _kick_all(turn: Turn) -> Iterator[Sample]:
    waiting, buried = turn.size(1_000_000), turn.size(100_000)
    turn.fill(waiting=waiting, buried=buried)
    walk_s = turn.raw_walk_s()
    run = turn.rwq("kick", "--all")
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting + buried
    title = f"kick --all: {buried:,} buried, {waiting:,} waiting"
    yield Sample(title, run.seconds, SECONDS, 6.5, RAW_WALK, walk_s, run)


def _export_and_import(turn: Turn) -> Iterator[Sample]:
    waiting, abandoned = turn.size(200_000), turn.size(20_000)
    turn.fill(waiting=waiting, abandoned=abandoned)
    walk_s = turn.raw_walk_s()
    file = turn.folder / "export"
    exported = turn.rwq("export", stdout=file)
    turn.server.empty()
    imported = turn.rwq("import", str(file))
    assert turn.server.client.llen(f"{QUEUE}:queue") == waiting
    for title, run, limit in (("export", exported, 25), ("import", imported, 16)):
        yield Sample(
            f"{title} {waiting + abandoned:,}", run.seconds, SECONDS, limit, RAW_WALK, walk_s, run
        )


CASES = [
    Case("release", "release --all", _release_all, rounds=2),
    Case("bury", "burying 100,000 at random", _bury, rounds=2),
    Case("kick", "kick --all", _kick_all),
    Case("export-import", "export and import", _export_and_import),
]
