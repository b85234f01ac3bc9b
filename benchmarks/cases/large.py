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


def _commands(file: str) -> dict[str, tuple[str, ...]]:
    """Commands that each find all items; `-` stands for their IDs."""
    return {
        "ls --match": ("ls", "-n", "0", "-o", "ids", "--match", "x{9}"),
        "show": ("show", "-", "-o", "jsonl"),
        "export": ("export", "-o", file),
        "import, all there": ("import", file, "--on-conflict", "skip"),
        "bury --match": ("bury", *_MATCH),
        "kick --match": ("kick", *_MATCH),
        "release --front --match": ("release", "--front", *_MATCH),
        "complete --dry-run --match": ("complete", "--dry-run", *_MATCH),
        "edit": ("edit", *_MATCH, "--run", "tr x y"),
        "import, all other": ("import", file, "--on-conflict", "skip"),
        "import that replaces": ("import", file, "--on-conflict", "replace", "--yes"),
        "undo of an import": ("undo", "--yes"),
        "undo of an edit": ("undo", "--yes"),
        "mv --match": ("mv", "--to", f"{QUEUE}-2", *_MATCH),
        "undo of a move": ("undo", "--yes"),
        "rm --match": ("rm", *_MATCH),
        "undo of a removal": ("undo", "--yes"),
        "diff": ("diff", QUEUE),
        "doctor": ("doctor", "--grace", "0"),
        "work": ("work", "--batch", "20", "--until-empty", "--", "cat"),
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
    file.unlink(missing_ok=True)
    for title, words in _commands(str(file)).items():
        turn.rwq(*words, stdin=names if "-" in words else None, statuses=(0, 1, 2, 3))
        longest_ms, _ = turn.server.longest_call()
        row = f"longest call, {title} of {len(ids)} x {size // _KIB:,} KiB"
        yield Sample(row, longest_ms, _MS, 1.5, f"LREM over {LIST_LENGTH:,}", lrem_ms)
    turn.server.empty()


CASES = [
    Case(f"large-{size}", f"payloads of {size} KiB", partial(_large, size=size * _KIB, count=count))
    for size, count in ((1024, 375), (300, 750))
]
