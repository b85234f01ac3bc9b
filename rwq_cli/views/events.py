"""The events of `rwq tail`: a line each, or a record."""

import time

from rwq_cli.core.model import FLUSHED, MISSED, Event, State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import DURATION, ID, NAME, TEXT, Fields, field
from rwq_cli.output.sections import Piece

EVENT_FIELDS: Fields[Event] = Fields(
    "An event",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "item_id", "the item's ID; null for `missed` and `flushed`", ID),
    field("event", "event", "what happened, such as `leased`, or `added and completed`"),
    field("at_ms", "at_ms", "when the server said so, by the clock of this machine"),
    field("before", "before", "the state before; null if it was not seen"),
    field("after", "after", "the state after"),
    field("holder", "holder", "who holds the lease, or held it last", NAME),
    field(
        "leased_seconds",
        lambda event: None if event.leased_s is None else round(event.leased_s, 3),
        "for how long it was leased, if the beginning was seen",
        DURATION,
    ),
    field("reason", "reason", "why it was buried", TEXT),
    field("missed", "missed", "how many events were not looked at; 0 for all others"),
    is_stream=True,
)
PLAIN = ("id", "at_ms", "event", "before", "after", "holder", "leased_seconds", "queue", "missed")
_STYLES = {"lost": "red", "buried": "yellow", "completed": "green", MISSED: "bold", FLUSHED: "red"}
_WIDEST = len("completed")


def event_line(event: Event, *, has_queue: bool) -> list[Piece]:
    """Return a line of the table, such as `12:03:04.113  leased     4f2a9c  by worker-3`."""
    seconds, ms = divmod(event.at_ms, 1000)
    moment = f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{ms:03}"
    queue = f"{escaped(event.queue)}  " if has_queue and event.queue else ""
    style = _STYLES.get(event.event)
    if event.item_id is None:
        text = f"… {human.counted(event.missed, 'event')} not shown"
        if event.event == FLUSHED:
            text = "… all keys of the server were deleted (FLUSHDB or FLUSHALL)"
        return [(f"{moment}  {queue}{text}", style)]
    details = []
    if event.holder is not None:
        details.append(f"by {escaped(event.holder)}")
    if event.leased_s is not None:
        details.append(f"after {human.duration(round(event.leased_s, 1))}")
    if event.reason is not None and event.after is State.BURIED:
        details.append(f"reason: {escaped(event.reason)}")
    return [
        (f"{moment}  ", "dim"),
        (f"{event.event:{_WIDEST}}", style),
        (f"  {queue}{escaped(event.item_id)}", None),
        (f"  {' '.join(details)}".rstrip(), None),
    ]
