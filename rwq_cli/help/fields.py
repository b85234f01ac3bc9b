"""What the fields of records mean, in JSON and CSV: for the reference."""

from collections.abc import Mapping
from typing import NamedTuple


class RecordKind(NamedTuple):
    """The records of some commands.

    Attributes:
        title: What a record is.
        commands: The commands that print it.
        meanings: Its fields, in order. A field that is an object has a line for each field in it,
            as `lease.holder`.
    """

    title: str
    commands: tuple[str, ...]
    meanings: Mapping[str, str]


_QUEUE = {"queue": "the queue's name"}
_NAMED = {**_QUEUE, "id": "the item's ID"}
_ITEM = {
    **_NAMED,
    "state": "one of the states",
    "bytes": "the size of the data",
    "data": "the data, if requested (`lease`, `--data`)",
    "preview": "the first 200 bytes of the data, escaped",
    "position": "0 = next to be leased; null if it is not waiting",
    "idle_seconds": "since the data was last used; for a waiting item, about since it was added",
    "lease": "null if there is none; a guard of a delayed or buried item counts as one",
    "lease.holder": "who holds it, escaped",
    "lease.ttl_ms": "the time left; null = no expiry",
    "due_ms": "when a delayed item is due",
    "buried_ms": "when a buried item was buried",
    "reason": "why a buried item was buried",
    "returns": "how often a clean returned it, or an attempt of `rwq work` failed",
    "data_json": "the data parsed, with every digit, if it is JSON and requested",
}
_RESULT = {
    "status": "`completed` or `rejected`",
    "completed_ms": "when the item was completed",
    "bytes": "the size of the result; null = none was given",
    "ttl_ms": "how long the result is kept; null = no expiry",
}
_COUNTS = {
    "waiting": "the length of the main list",
    "processing": "the length of the list of items that workers took",
    "leased": "of these: with a lease that expires",
    "held": "of these: with a lease without expiry; with `--deep`, also those in no list",
    "abandoned": "of these: without a lease; `queues` looks at up to 1,000",
    "delayed": "set aside until their time, including those that are due now",
    "due": "of these: due now",
    "buried": "set aside",
    "returned": "items that were returned at least once",
    "orphaned": "in no list, without a lease; `--deep` only",
    "unlisted": "in no list, with a lease; `--deep` only",
    "duplicated": "listed more than once; `--deep` only",
    "ghosts": "entries without data; `--deep` only",
    "stray_leases": "leases without an item; `--deep` only",
    "wrong_types": "keys of the wrong type; `--deep` only",
    "returns": "the returns of all items together; `--deep` only",
    "results": "results that are kept; `--deep` only",
    "oldest_waiting_seconds": "since the next item was last used",
    "lease_soonest_ms": "until the first lease expires",
    "lease_latest_ms": "until the last lease expires",
    "payload_sampled": "how many waiting items were measured for the next three",
    "payload_min_bytes": "the smallest data",
    "payload_median_bytes": "the median",
    "payload_max_bytes": "the largest data",
}

RECORD_KINDS = (
    RecordKind("An item", ("ls", "leases", "lease"), _ITEM),
    RecordKind(
        "An item, explained",
        ("show",),
        {
            **_ITEM,
            "meaning": "the state in a sentence",
            "next": "what will happen next, in a sentence",
            "commands": "command lines to run next",
            "next_in_seconds": "until something happens without help; null if nothing will",
            "findings": "what `doctor` would report, by its codes",
            "cause": "of the findings",
            "cure": "of the findings",
            "places_per_second": "how fast the item moves up (`--eta`)",
            "result": "the result kept under this ID; null if there is none",
            **{f"result.{name}": meaning for name, meaning in _RESULT.items()},
            "facts": "what was read",
            "facts.data": "whether the data key exists",
            "facts.in_main": "how often it is in the main list",
            "facts.in_processing": "how often it is in processing",
            "facts.in_cleaning": "how often it is in the list of a cleaner of redis-work-queue 0.1",
            "facts.data_key": "the name of the data key",
            "facts.main_places": "its places in the main list, 0 = next to be leased",
            "facts.processing_places": "its places in processing, 0 = leased longest ago",
            "facts.lease_keys": "the names of the lease keys that exist",
            "facts.leases": "those that hold a lease: `key`, `holder`, `ttl_ms`",
            "facts.wrong_types": "keys of the wrong type: `key`, `type`",
        },
    ),
    RecordKind("The counts of a queue", ("stats", "queues"), {**_QUEUE, **_COUNTS}),
    RecordKind(
        "What became of an item",
        (
            *("add", "complete", "touch", "release", "bury", "kick", "edit", "set", "rm", "mv"),
            *("purge", "import"),
        ),
        {
            **_NAMED,
            "status": "what was done, or why nothing was: see [below](#what-became-of-items)",
            "holder": "who holds the item, if that is why nothing was done",
        },
    ),
    RecordKind(
        "A repair of a clean",
        ("clean light", "clean deep"),
        {
            **_NAMED,
            "action": "`returned`, `dropped`, `promoted`, `pruned` or `buried`",
            "state": "the state that the item was in",
            "where": "the key that was changed: `main`, `processing`, `delayed`, and so on",
            "dry_run": "whether nothing was changed",
        },
    ),
    RecordKind(
        "A finding",
        ("doctor",),
        {
            **_QUEUE,
            "code": "the finding's code",
            "severity": "`error`, `warning` or `note`",
            "count": "how many items or keys",
            "fixed": "how many of them were fixed (`--fix`)",
            "left": "how many are left",
            "examples": "up to five IDs or keys, escaped; `examples_b64` has their bytes",
            "examples_are": "`ids` or `keys`",
            "cause": "what it is",
            "cure": "what to do about it",
            "command": "a command line that fixes it or shows more",
            "left_because": "why `--fix` leaves it",
            "dry_run": "whether nothing was changed",
        },
    ),
    RecordKind(
        "A check",
        ("check",),
        {
            **_QUEUE,
            "status": "`OK`, `WARNING`, `CRITICAL` or `UNKNOWN`",
            "waiting": "as in the counts",
            "oldest_waiting_seconds": "as in the counts",
            "abandoned": "as in the counts",
            "processing": "as in the counts",
            "delayed": "as in the counts",
            "buried": "as in the counts",
            "orphaned": "as in the counts, if there is a limit for it",
            "alerts": "each limit that is exceeded, or cannot be checked, as `LEVEL: text`",
        },
    ),
    RecordKind(
        "A wait",
        ("wait",),
        {
            **_QUEUE,
            "reached": "whether the condition was met in time",
            "waiting": "as in the counts",
            "processing": "as in the counts",
            "delayed": "as in the counts",
            "buried": "as in the counts",
            "remaining": "how many of the items of `--id` still exist; null without `--id`",
            "waited_seconds": "how long it waited",
        },
    ),
    RecordKind(
        "A result",
        ("result",),
        {
            **_NAMED,
            "state": "of the item that has this ID now, else `gone`",
            "status": "`completed` or `rejected`; from here on, null if no result is kept",
            "result": "the bytes that were kept",
            "bytes": "the size of the result; null = none was given",
            "completed_ms": "when the item was completed",
            "holder": "who held it then, escaped; null = nobody",
            "ttl_ms": "how long the result is kept; null = no expiry",
        },
    ),
    RecordKind(
        "An event of a worker",
        ("work",),
        {
            "event": "`started`, `completed`, `retry`, `released`, `buried`, `rejected` or `lost`",
            **_NAMED,
            "attempt": "which attempt it is, from 1; the last one, if none are left",
            "returns": "how often it failed or was returned before",
            "pid": "the process ID of the command; null if none was started",
            "exit": "its exit code; null while it runs, or if a signal ended it",
            "signal": "the number of the signal that ended it",
            "seconds": "how long it ran",
            "reason": "why it was retried, given up or lost",
            "delay_seconds": "until the next attempt",
            "gave_up": "whether the item was given up",
            "time": "when, in Unix seconds",
        },
    ),
    RecordKind(
        "An exported item",
        ("export",),
        {
            "id": "the item's ID",
            "data": "the data",
            "state": "one of the states",
            "place": "`main`, `processing`, `delayed`, `buried` or null",
            "lease": "null if there is none",
            "lease.holder": "who holds it",
            "lease.ttl_ms": "the time left; null = no expiry",
            "due_ms": "when a delayed item is due",
            "buried_ms": "when a buried item was buried",
            "reason": "why a buried item was buried",
            "returns": "how often it was returned",
            "nearer": "`next` or `last`: the end of the queue that a waiting item was nearer to",
            "queue": "the queue's name, in an export of several queues",
        },
    ),
    RecordKind(
        "An undo file",
        ("undo",),
        {
            "file": "its path",
            **_QUEUE,
            "server": "the server's address",
            "verb": "the command that wrote it",
            "to": "the queue that `mv` moved items to",
            "time_ms": "when it was written",
            "items": "how many items it has",
            "results": "how many results it has",
            "state": "`unused`, `restored`, `begun` or `incomplete`",
            "bytes": "its size",
        },
    ),
    RecordKind(
        "A context",
        ("context list", "context show"),
        {
            "name": "its name",
            "current": "whether it is the current one",
            "url": "the server, with the password masked",
            "queue": "the queue, where nothing else names one",
            "password": "where the password is: `url`, `command`, `file` or null",
            "password_command": "the command that prints it",
            "password_file": "the file that has it",
            "color": "the colour of its name in questions",
            "read_only": "whether changes need `--write`",
            "protect": "`none`, `ask` or `type`",
        },
    ),
    RecordKind(
        "A checked server",
        ("context check",),
        {
            "server": "the server's address, with the password masked",
            "context": "the context's name; null if there is none",
            **_QUEUE,
            "version": "the server's version",
            "latency_ms": "of one call",
            "user": "the ACL user",
            "denied": "what the user may not do: `command`, `reason`; null = unknown",
            "writes": "whether the server accepts writes; a read-only replica does not",
            "no_writes_because": "why not",
            "times": "whether `idle_seconds` will be known",
            "no_times_because": "why not",
            "undo": "whether undo files can be written",
            "no_undo_because": "why not",
            "no_touch": "whether looking leaves idle times as they are",
        },
    ),
    RecordKind(
        "The embedded server",
        ("local start", "local stop", "local status"),
        {
            "running": "whether it runs",
            "pid": "its process ID",
            "url": "its address",
            "directory": "where its data is",
            "server": "the program and its version",
            "used_memory_bytes": "the memory that it uses",
            "aof_bytes": "the size of its append-only files",
            "uptime_seconds": "since it was started",
        },
    ),
)

# What is in JSON besides the records: the fields that `--watch` adds to them, and objects of other
# kinds.
OTHER_KINDS = (
    RecordKind(
        "What --watch adds",
        ("stats", "queues", "leases", "ls"),
        {
            "in_per_second": "how many were added or returned (`stats`, `queues`)",
            "left_per_second": "how many were completed, removed or returned (`stats`, `queues`)",
            "empty_in_seconds": "until nothing waits, at the current rates (`stats`, `queues`)",
            "rates_are_least": "whether the rates may be higher (`stats`, `queues`)",
            "at_ms": "the time of the tick",
        },
    ),
    RecordKind(
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
    RecordKind(
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
    RecordKind(
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
