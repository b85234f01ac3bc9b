"""Large payloads: no verb that chooses, reads or writes them may hold up the other clients."""

from collections.abc import Iterator
from functools import partial

from benchmarks.filling import QUEUE, write_lines
from benchmarks.longest import LIST_LENGTH, fill_list, longest_lrem_ms
from benchmarks.results import Sample, Unit
from benchmarks.turn import Case, Turn

_KIB = 1024
_MATCH = ("--match", "x{9}", "--yes")
_MS = Unit("ms", digits=1)


def _commands(file: str, other_url: str) -> dict[str, tuple[str, ...]]:
    """Commands that each find all items; `-` stands for their IDs, and `export` writes the file."""
    other = f"{QUEUE}-2"
    return {
        "ls --match": ("ls", "-n", "0", "-o", "ids", "--match", "x{9}"),
        "show": ("show", "-", "-o", "jsonl"),
        "export": ("export",),
        "import, all there": ("import", file, "--on-conflict", "skip"),
        "bury --match": ("bury", *_MATCH),
        "kick --match": ("kick", *_MATCH),
        "complete --dry-run --match": ("complete", "--dry-run", *_MATCH),
        "edit": ("edit", *_MATCH, "--run", "tr x y"),
        "import, all other": ("import", file, "--on-conflict", "skip"),
        "import that replaces": ("import", file, "--on-conflict", "replace", "--yes"),
        "undo of an import": ("undo", "--yes"),
        "undo of an edit": ("undo", "--yes"),
        "mv --match": ("mv", "--to", other, *_MATCH),
        "undo of a move": ("undo", "--yes"),
        "rm --match": ("rm", *_MATCH),
        "undo of a removal": ("undo", "--yes"),
        "mv": ("mv", "--to", other, "--all", "--yes"),
        "import": ("import", file),
        "import elsewhere": ("import", file, "-u", other_url),
        "diff": ("diff", "--to-url", other_url),
        "doctor": ("doctor", "--grace", "0"),
        "lease": ("lease", "-n", "1000", "-o", "ids"),
        "release --front --match": ("release", "--front", "--force", *_MATCH),
        "work": ("work", "--batch", "20", "--drain", "--", "cat"),
    }


def _large(turn: Turn, size: int, count: int) -> Iterator[Sample]:
    client = turn.server.client
    turn.server.empty()
    fill_list(turn.server)
    lrem_ms = longest_lrem_ms(turn.server)
    turn.server.empty()
    ids = [b"%d" % number for number in range(turn.size(count))]
    for item_id in ids:
        client.set(f"{QUEUE}:item:".encode() + item_id, b"x" * size)
    client.lpush(f"{QUEUE}:queue", *ids)
    names, file = write_lines(turn.folder / "ids", ids), turn.folder / "export"
    for title, words in _commands(str(file), f"{turn.server.url}?db=1").items():
        stdin, stdout = names if "-" in words else None, file if title == "export" else None
        turn.rwq(*words, stdin=stdin, stdout=stdout, statuses=(0, 1, 3))
        longest_ms, _ = turn.server.longest_call()
        row = f"longest call, {title} of {len(ids)} x {size // _KIB:,} KiB"
        yield Sample(row, longest_ms, _MS, 1.5, f"LREM over {LIST_LENGTH:,}", lrem_ms)
    turn.server.empty()


CASES = [
    Case(f"large-{size}", f"payloads of {size} KiB", partial(_large, size=size * _KIB, count=count))
    for size, count in ((1024, 375), (300, 750))
]
