"""`rwq diff`: compare two queues."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

from rwq_cli.cli.connect import open_queue, warn_missing
from rwq_cli.cli.elsewhere import ToContextOption, ToUrlOption, open_elsewhere
from rwq_cli.cli.options import offer_queues
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, argument, command, escaped
from rwq_cli.core.inspect.differences import Difference, differences
from rwq_cli.output.field import ID, Fields, field

_SAME: dict[str, Any] = {"show": {None: "", True: "same", False: "differs"}.get}
DIFFERENCE_FIELDS: Fields[Difference] = Fields(
    "A difference between two queues",
    field("id", "item_id", "the item's ID", ID),
    field("kind", "kind", "`only-here`, `only-there` or `differs`", title="DIFFERENCE"),
    field("here", "here", "its state in the first queue; null if there is no such item"),
    field("there", "there", "its state in the other queue; null if there is no such item"),
    field(
        *("same_data", lambda each: each.same_data if each.here and each.there else None),
        "whether both have the same data; null if only one has it",
        *(_SAME, "DATA"),
        rank=1,
    ),
    is_stream=True,
)
DIFFERENCE_COLUMNS = ("id", "kind", "here", "there", "same_data")


@command(
    record=DIFFERENCE_FIELDS,
    ok="no differences",
    no="differences",
    reads_only=True,
    plain={"a difference": ", ".join(DIFFERENCE_COLUMNS)},
)
def diff(
    settings: Settings,
    name: Annotated[str | None, argument("[QUEUE]", "The first queue.", offer=offer_queues)] = None,
    other: Annotated[
        str | None, argument("[OTHER]", "The other. Default: the same name.", offer=offer_queues)
    ] = None,
    to_url: ToUrlOption = None,
    to_context: ToContextOption = None,
) -> ExitStatus:
    """Compare two queues, on one server or two, by ID: what only one of them has, and what
    differs in data or state. Without OTHER, the queue of the same name is compared. Changes that
    workers make meanwhile may be listed, too.

    rwq diff jobs jobs-copy
    rwq diff jobs --to-context new
    rwq diff jobs jobs-copy -o jsonl
    """
    if name is not None and "queue" in settings.given:
        # The one argument is the other queue.
        if other is not None:
            raise InvalidArgument.both("-q", "QUEUE")
        name, other = None, name
    queue = open_queue(settings if name is None else settings.replaced(queue=[name]))
    other_name = queue.name if other is None else os.fsencode(other)
    there, others = opened = open_elsewhere(settings, queue, other_name, to_url, to_context)
    here, label = escaped(queue.name), opened.label
    if others is not None:
        here += f" on {settings.server_label}"
    kinds: Counter[str] = Counter()

    def counted() -> Iterator[Difference]:
        for each in differences(queue, there):
            kinds[each.kind.value] += 1
            yield each

    found = settings.out.table(
        counted(),
        DIFFERENCE_FIELDS,
        DIFFERENCE_COLUMNS,
        empty=f"No differences between {here} and {label}.",
    )
    for each in (queue, there):
        warn_missing(settings, each)
    counts = ", ".join(f"{kind.replace('-', ' ')} {number:,}" for kind, number in kinds.items())
    settings.environment.note(f"{counts or 'no differences'} ({here} and {label})")
    return ExitStatus.NO if found else ExitStatus.OK
