"""The lines of an export and of an undo file: a header, then an item or a result each, all JSON."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.model import State
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import View

# The version of the format: raised when a reader of today would go wrong with it.
VERSION = 1


@dataclass(frozen=True)
class Taken:
    """What an undo file's header says besides.

    Attributes:
        verb: The command that took the items away: `rm`, `mv` or `purge`.
        server: The server's URL, without its password.
        to: For `mv`, the queue that they went to; else None.
    """

    verb: str
    server: str
    to: bytes | None = None


@dataclass(frozen=True)
class Header:
    """The first line.

    Attributes:
        queue: The queue's name.
        exported_ms: The server's clock when reading began, unix ms.
        taken: For undo files, how the items were taken away; else None.
    """

    queue: bytes
    exported_ms: int
    taken: Taken | None = None


class MarkWord(StrEnum):
    """What a line of an undo file that is no item says; see `rwq_cli.undo.file`."""

    KEPT = "kept"
    TAKEN = "taken"
    RESTORED = "restored"
    RESULT_RESTORED = "result-restored"
    TRIED = "tried"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of an undo file that is no item.

    Attributes:
        word: What it says.
        item_id: Of which item; None for what is said of all.
    """

    word: MarkWord
    item_id: bytes | None = None


def header_line(header: Header) -> bytes:
    """The first line, with its end."""
    fields: dict[str, Any] = {
        "rwq_export": VERSION,
        **bytes_fields("queue", header.queue),
        "exported_ms": header.exported_ms,
        "undo": None,
    }
    if header.taken is not None:
        fields["undo"] = {
            "verb": header.taken.verb,
            "server": header.taken.server,
            **bytes_fields("to", header.taken.to),
        }
    return _line(fields)


def picture_line(snapshot: ItemSnapshot) -> bytes:
    """The line of an item, with its end."""
    return _line(picture_fields(snapshot))


def entry_line(entry: ItemSnapshot | Result) -> bytes:
    """The line of an item or of a result, with its end."""
    return result_line(entry) if isinstance(entry, Result) else picture_line(entry)


def result_line(result: Result) -> bytes:
    """The line of what is kept of an item that was completed, with its end.

    Its ID is under another name than an item's, which tells the two apart.
    """
    return _line(
        {
            **bytes_fields("result_of", result.item_id),
            "status": result.verdict.value,
            "completed_ms": result.completed_ms,
            **bytes_fields("result", result.result),
            **bytes_fields("holder", result.holder),
            "ttl_ms": result.ttl_ms,
        }
    )


def kept_line(item_id: bytes) -> bytes:
    """The line of an undo file that takes an item's line back: it was not taken away after all."""
    return _line({"kept": True, **bytes_fields("id", item_id)})


def taken_line(items: int) -> bytes:
    """The line of an undo file that says how many items above it are known to be taken away."""
    return _line({"taken": items})


def restored_line(item_id: bytes) -> bytes:
    """The line of an undo file that says that an item was put back."""
    return _line({"restored": True, **bytes_fields("id", item_id)})


def result_restored_line(item_id: bytes) -> bytes:
    """The line of an undo file that says that a result was put back."""
    return _line({"restored": True, **bytes_fields("result_of", item_id)})


def picture_fields(snapshot: ItemSnapshot) -> dict[str, Any]:
    """An item's JSON object; a field that does not apply is null."""
    lease = None
    if snapshot.lease is not None:
        lease = {**bytes_fields("holder", snapshot.lease.holder), "ttl_ms": snapshot.lease.ttl_ms}
    return {
        **bytes_fields("id", snapshot.item_id),
        **bytes_fields("data", snapshot.data),
        "state": snapshot.state.value,
        "place": None if snapshot.place is None else snapshot.place.value,
        "lease": lease,
        "due_ms": snapshot.due_ms,
        "buried_ms": snapshot.buried_ms,
        "reason": None if snapshot.reason is None else escaped(snapshot.reason),
        "returns": snapshot.returns,
        "nearer": None if snapshot.nearer is None else snapshot.nearer.value,
    }


def picture_view() -> View[ItemSnapshot]:
    """Items of an export, for the formats that are not its own."""
    nothing = ItemSnapshot(b"", b"", State.GONE, None)
    return View(
        picture_fields,
        lambda p: p.item_id,
        nothing,
        data=lambda p: p.data,
        nested={"lease": ("holder", "ttl_ms")},
    )


def _line(fields: dict[str, Any]) -> bytes:
    # Not `to_json`, which looks at every character of what is not printable: an item may have many
    # megabytes. Here such a line is written in ASCII.
    text = _ENCODER.encode(fields)
    if not text.isprintable():
        text = _ASCII_ENCODER.encode(fields).replace("\x7f", "\\u007f")
    return text.encode() + b"\n"


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_ASCII_ENCODER = json.JSONEncoder(check_circular=False)

# The last line of an undo file of which something is left that could not be put back.
TRIED_LINE = _line({"tried": True})
