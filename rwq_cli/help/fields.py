"""What is in JSON besides the fields of records: for the reference."""

from collections.abc import Mapping
from typing import NamedTuple


class OtherKind(NamedTuple):
    """JSON objects that are no records.

    Attributes:
        title: What one is.
        commands: The commands that print it.
        meanings: Its fields, in order.
    """

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
            "`to`, and `written_sha256` of an edit",
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

# What a verb did to an item: the word in `status`, and, with `_` for `-`, the name of its count in
# the summary. Some counts have the plural.
OUTCOMES = {
    "added": "it was added",
    "duplicate": "its ID exists; counted as `duplicates`",
    "completed": "it was completed by this call",
    "touched": "its lease has a new expiry",
    "released": "it waits again",
    "delayed": "it is delayed",
    "buried": "it is buried",
    "kicked": "it waits again",
    "promoted": "it was due, and waits again",
    "returned": "its worker had died, and it waits again",
    "dropped": "an entry without data, or a surplus one, was dropped",
    "pruned": "a stale entry was removed: its item is gone, or is in another state",
    "removed": "it was removed",
    "moved": "it is in the other queue",
    "set": "its data was replaced",
    "unchanged": "it already had this data",
    "imported": "it was imported",
    "restored": "it was restored",
    "replaced": "it replaces the item that had its ID",
    "skipped": "its ID exists with other data, and that was kept",
    "already-there": "it exists already, with the same data",
    "imported-before": "it was imported by an earlier run that was interrupted",
    "restored-before": "it was restored by an earlier run that was interrupted",
    "in-doubt": "it was restored although it may have been completed meanwhile",
    "already-waiting": "it waits already",
    "already-buried": "it is buried already",
    "missing": "there is no such item",
    "changed": "it is no longer what was chosen",
    "not-owner": "another session has leased it",
    "not-leased": "nobody holds it",
    "not-buried": "it is not buried",
    "conflict": "its ID exists with other data, or in the other queue; `conflicts` of `import` and "
    "`undo`",
    "wrong-type": "one of its keys has the wrong type",
    "deleted": "the undo file was deleted",
    "in-use": "another rwq uses the undo file",
    "retry": "its command failed, and it will be tried again",
    "rejected": "`work` gave it up, its record cannot be used, or a key has the wrong type",
    "lost": "its lease was lost, or its command itself completed, buried or released it",
    "empty": "lines without anything in them (`add`)",
    "results": "results of completed items that were restored, or removed by `purge`",
    "results-already-there": "results that exist already",
    "results-rejected": "results whose key is taken by something else",
}

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
