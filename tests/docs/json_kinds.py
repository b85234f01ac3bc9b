"""What is in JSON besides the fields of records: for the reference."""

from collections.abc import Mapping
from typing import NamedTuple


class OtherKind(NamedTuple):
    """JSON objects that are no records."""

    title: str
    commands: tuple[str, ...]
    meanings: Mapping[str, str]


# What is in JSON besides the records: objects of other kinds.
OTHER_KINDS = (
    OtherKind(
        "The first line of an export",
        ("export",),
        {
            "rwq_export": "the version of the format: 1, or 2 for several queues",
            "queue": "the queue's name, in version 1",
            "exported_ms": "when it was written",
            "undo": "null; in an undo file, where its items are from: `verb`, `server`, `context`, "
            "`by`, and of a move `to`, `to_server` and `to_context`",
        },
    ),
    OtherKind(
        "A result in an export",
        ("export",),
        {
            "queue": "the queue's name, in version 2",
            "result_of": "the ID of the completed item",
            "status": "`completed` or `rejected`",
            "completed_ms": "when the item was completed",
            "result": "the bytes that were kept",
            "holder": "who held the item then",
            "ttl_ms": "how long the result is kept; null = no expiry",
        },
    ),
    OtherKind(
        "An error",
        (),
        {
            "error": "what happened",
            "code": "a word that does not change",
            "hint": "what to do",
            "acknowledged": "how many items were acknowledged, the first ones of the input",
            "acknowledged_after": "which others were: pairs of the first one's index and a number",
            "in_doubt": "how many items may or may not have been changed",
        },
    ),
)

# The fields of a summary besides the counts.
SUMMARY = {
    "queue": "the queue's name",
    "queues": "for `work`, the queues' names; for `add` with several, each with its `added`",
    "to": "the queue that `mv` moves items to",
    "verb": "the command that `undo` undoes",
    "dry_run": "whether nothing was changed; the counts are what would be",
    "undo_file": "the file that `undo` restores; null if none was written",
    "failures": "the first five: `id`, `code` (as `status`) and `reason`; lines that `import` and "
    "`undo` rejected come first, with `id` null",
}
