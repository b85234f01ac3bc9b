"""The lines of exports and undo files, all JSON: a header, then an item or a result per line."""

from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import bytes_fields, to_json

# The version of the format, which changes if older readers would misread the file: in version 2,
# each line names its queue.
VERSION = 2


class UndoOrigin(NamedTuple):
    """The part of a header that only undo files have: which command removed or changed items."""

    # `server` is a URL without user and password; contexts are named as they were then. Only `mv`
    # sets `to`, the queue that the items were moved to, and its server if that is another one.
    # `written_ms` is this machine's clock; `run_id` and `server_key` tell the server from another
    # behind the same address, see `rwq_cli.undo.servers`.
    verb: str
    server: str
    context: str | None = None
    by: str | None = None
    to: bytes | None = None
    to_server: str | None = None
    to_context: str | None = None
    written_ms: int | None = None
    run_id: str | None = None
    server_key: str | None = None

    @property
    def label(self) -> str:
        return self.server if self.context is None else f"{self.context} ({self.server})"


class ExportHeader(NamedTuple):
    """The first line: the queue, empty if each line names its own, and when reading began."""

    queue: bytes
    exported_ms: int
    origin: UndoOrigin | None = None


class ControlWord(StrEnum):
    """The kind of a control line: the last of an export; others, see `rwq_cli.undo.journal`."""

    NOT_REMOVED = "kept"
    REMOVED = "taken"
    REPLACED_BY = "written"
    BEGUN = "begun"
    RESTORED = "restored"
    CLOSED = "closed"
    EXPORT_END = "export_end"


class UndoState(StrEnum):
    UNUSED = "unused"
    # An undo is running or was interrupted; or it has ended without restoring everything.
    BEGUN = "begun"
    INCOMPLETE = "incomplete"
    RESTORED = "restored"
    UNREADABLE = "unreadable"


class Trailer(NamedTuple):
    """What the last line of an undo file sums up: how many items and results there are to restore,
    and how far they are restored, see `UndoState`."""

    items: int
    results: int
    state: UndoState


def header_line(header: ExportHeader) -> bytes:
    origin = header.origin
    fields = {
        "rwq_export": 1 if header.queue else VERSION,
        **bytes_fields("queue", header.queue or None),
        "exported_ms": header.exported_ms,
        "undo": origin and {**origin._asdict(), **bytes_fields("to", origin.to)},
    }
    return to_json(fields) + b"\n"


def entry_line(entry: ItemSnapshot | Result, queue: bytes | None = None) -> bytes:
    """Return the line of an item or of a result, with its newline."""
    # A result's ID has a different field name from an item's, which tells the two apart. The queue
    # is given if the header does not name it.
    queue_fields = {} if queue is None else bytes_fields("queue", queue)
    if isinstance(entry, ItemSnapshot):
        lease = entry.lease
        fields = {
            **bytes_fields("id", entry.item_id),
            **bytes_fields("data", entry.data),
            "state": entry.state,
            "place": entry.place,
            "lease": lease and {**bytes_fields("holder", lease.holder), "ttl_ms": lease.ttl_ms},
            "due_ms": entry.due_ms,
            "buried_ms": entry.buried_ms,
            "reason": None if entry.reason is None else escaped(entry.reason),
            "returns": entry.returns,
            "nearer": entry.nearer,
        }
    else:
        fields = {
            **bytes_fields("result_of", entry.item_id),
            "status": entry.status.value,
            "completed_ms": entry.completed_ms,
            **bytes_fields("result", entry.result),
            **bytes_fields("holder", entry.holder),
            "ttl_ms": entry.ttl_ms,
        }
    return to_json({**queue_fields, **fields}) + b"\n"


def export_end_line(items: int, results: int) -> bytes:
    """Return the last line of an export, by which a reader knows that nothing was cut off."""
    return control_line(ControlWord.EXPORT_END, {"items": items, "results": results})


def control_line(word: ControlWord, value: object = True, **more: object) -> bytes:
    """Return a line of an undo file that is neither an item nor a result."""
    return to_json({word.value: value, **more}) + b"\n"


# Written to an undo file before anything in it is restored.
BEGUN_LINE = control_line(ControlWord.BEGUN)


def trailer_line(trailer: Trailer) -> bytes:
    return control_line(ControlWord.CLOSED, trailer._asdict())
