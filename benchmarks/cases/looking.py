"""Commands that only look."""

import json
from collections.abc import Iterator

from benchmarks.filling import write_lines
from benchmarks.results import CALLS, MILLISECONDS, SECONDS, Sample, microseconds_each
from benchmarks.turn import RAW_WALK, Case, Turn

# How often a short command is run in one turn.
_TIMES = 5


def _page_one(turn: Turn) -> Iterator[Sample]:
    """The first page of a long queue against that of a short one."""
    waiting = turn.size(1_000_000)
    commands = ("ls", "leases", "stats")
    turn.fill(waiting=100)
    short = {
        name: min(turn.rwq(name, "-o", "table").seconds for _ in range(_TIMES)) for name in commands
    }
    turn.fill(waiting=waiting)
    for name in commands * _TIMES:
        run = turn.rwq(name, "-o", "table")
        yield Sample(
            f"page one: {name} on {waiting:,} waiting",
            run.seconds,
            MILLISECONDS,
            1.2,
            "on 100",
            short[name],
            run,
        )


def _listing(turn: Turn) -> Iterator[Sample]:
    waiting = turn.size(1_000_000)
    turn.fill(waiting=waiting)
    walk_s = turn.raw_walk_s()
    listed = str(turn.size(100_000))
    for words, limit in ((["ls", "-n", listed, "-o", "jsonl"], 9), (["stats", "--deep"], 5.5)):
        run = turn.rwq(*words)
        title = f"{' '.join(words)} on {waiting:,} waiting"
        yield Sample(title, run.seconds, SECONDS, limit, RAW_WALK, walk_s, run)


def _painting(turn: Turn) -> Iterator[Sample]:
    """What people see beside what programs read; the CPU time of rwq, at full size in CI, too."""
    rows, reports = 20_000, 1_000
    waiting_ids = turn.fill(waiting=rows)["waiting"]
    plain = turn.rwq("ls", "-n", "0", "-o", "plain").client_cpu_s
    table = turn.rwq("ls", "-n", "0", "-o", "table")
    unit = microseconds_each(rows)
    yield Sample(
        f"a table of {rows:,} rows, CPU time", table.client_cpu_s, unit, 2.5, "plain", plain, table
    )

    ids = write_lines(turn.folder / "ids", waiting_ids[:reports])
    documents = turn.rwq("show", "-", "-o", "json", stdin=ids).client_cpu_s
    text = turn.rwq("show", "-", "-o", "table", stdin=ids)
    title = f"show - of {reports:,} as text, CPU time"
    yield Sample(title, text.client_cpu_s, SECONDS, 3, "as JSON", documents, text)

    values = [{"id": number, "tags": ["a", "b"]} for number in range(30_000)]
    data = write_lines(turn.folder / "data", [json.dumps(values).encode()])
    turn.rwq("add", "--id", "big", "-f", str(data))
    raw = turn.rwq("show", "big", "-o", "data").client_cpu_s
    pretty = turn.rwq("show", "big", "--data", "-o", "table")
    title = f"show --data of {data.stat().st_size / 1e6:.1f} MB of JSON, CPU time"
    # Where the bytes alone take 0.12 s, this takes at most a second.
    yield Sample(title, pretty.client_cpu_s, SECONDS, 8, "-o data", raw, pretty)


def _choosing(turn: Turn) -> Iterator[Sample]:
    """Items chosen by a value in their JSON data, and by a regular expression; all of them are."""
    waiting = turn.size(1_000_000)
    turn.fill(waiting=waiting)
    by_match = turn.rwq("ls", "-n", "0", "-o", "ids", "--match", '"user":123456\\b')
    chosen = turn.folder / "chosen"
    by_where = turn.rwq("ls", "-n", "0", "-o", "ids", "--where", "user=123456", stdout=chosen)
    assert chosen.read_bytes().count(b"\n") == waiting
    title = f"ls --where on {waiting:,} waiting"
    yield Sample(title, by_where.seconds, SECONDS, 1.3, "--match", by_match.seconds, by_where)


def _show_many(turn: Turn) -> Iterator[Sample]:
    waiting, chosen = turn.size(10_000), turn.size(1_000)
    made = turn.fill(waiting=waiting)
    ids = write_lines(turn.folder / "ids", made["waiting"][:: waiting // chosen][:chosen])
    run = turn.rwq("show", "-", "-o", "jsonl", stdin=ids)
    commands, reads = turn.server.commands_run(), turn.server.socket_reads()
    yield Sample(f"show - of {chosen:,}: round trips", reads / chosen, CALLS, 0.05)
    yield Sample(f"show - of {chosen:,}: commands on the server", commands / chosen, CALLS, 12)
    walk_s = turn.raw_walk_s()
    title = f"show - of {chosen:,}"
    yield Sample(title, run.seconds, SECONDS, 6, RAW_WALK, walk_s, run)


CASES = [
    Case("page-one", "page one", _page_one),
    Case("listing", "listings", _listing),
    Case("painting", "tables and sections", _painting),
    Case("choosing", "choosing by data", _choosing, rounds=2),
    Case("show", "show -", _show_many),
]
