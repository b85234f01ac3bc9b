"""`rwq diff`: compare two queues."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from rwq_cli.cli.connect import open_queue, warn_missing
from rwq_cli.cli.elsewhere import ToContextOption, ToUrlOption, open_elsewhere
from rwq_cli.cli.options import offer_queues
from rwq_cli.commands import (
    ExitStatus,
    InvalidArgument,
    Settings,
    argument,
    command,
    escaped,
    option,
)
from rwq_cli.commands.undoing import make_line_reporter, note_incompleteness
from rwq_cli.core.inspect.differences import Difference, ExportedQueue, differences
from rwq_cli.core.inspect.queues import exists
from rwq_cli.core.items.lines import Line
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.input.export_reader import ExportReader
from rwq_cli.output.field import ID, Fields, field

_SAME: dict[str, Any] = {"show": {None: "", True: "same", False: "differs"}.get}
DIFFERENCE_FIELDS: Fields[Difference] = Fields(
    "A difference between two queues",
    field("id", "item_id", "the item's ID", ID),
    field("kind", "kind", "`only-here`, `only-there` or `differs`", title="DIFFERENCE"),
    field("here", "here", "its state in the first queue; null if there is no such item"),
    field("there", "there", "its state in the other queue; null if there is no such item"),
    field(
        *("same_data", lambda row: row.same_data if row.here and row.there else None),
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
    no="differences, or neither queue exists",
    partial="with --file: lines of the export could not be used, or some are missing",
    reads_only=True,
    plain={"a difference": ", ".join(DIFFERENCE_COLUMNS)},
    excludes=["--file --to-url --to-context"],
)
def diff(
    settings: Settings,
    name: Annotated[str | None, argument("[QUEUE]", "The first queue.", offer=offer_queues)] = None,
    other: Annotated[
        str | None, argument("[OTHER]", "The other. Default: the same name.", offer=offer_queues)
    ] = None,
    to_url: ToUrlOption = None,
    to_context: ToContextOption = None,
    file: Annotated[
        str | None, option("--file EXPORT", "Compare with an export; - is stdin.")
    ] = None,
) -> ExitStatus:
    """Compare two queues, on one server or two, by ID: what only one of them has, and what
    differs in data or state. Without OTHER, the queue of the same name is compared. With --file,
    the queue is compared with its export. Changes that workers make meanwhile may be listed, too.

    rwq diff jobs jobs-copy
    rwq diff jobs --to-context new
    rwq diff jobs --file jobs.jsonl
    rwq diff jobs jobs-copy -o jsonl
    """
    if name is not None and "queue" in settings.common_options:
        # The one argument is the other queue.
        if other is not None:
            raise InvalidArgument.both("-q", "QUEUE")
        name, other = None, name
    if file is not None and other is not None:
        raise InvalidArgument.both("--file", "OTHER")
    queue = open_queue(settings if name is None else settings.replaced(queue=[name]))
    if file is not None:
        return _compare_with_export(settings, queue, file)
    other_name = queue.name if other is None else os.fsencode(other)
    opened = open_elsewhere(settings, queue, other_name, to_url, to_context)
    label = escaped(queue.name)
    if opened.settings is not None:
        label += f" on {settings.server_label}"
    has_differences = _show(settings, differences(queue, opened.queue), label, opened.label)
    warn_missing(settings, queue)
    warn_missing(opened.settings or settings, opened.queue)
    is_nothing = not has_differences and not any(map(exists, (queue, opened.queue)))
    return ExitStatus.NO if has_differences or is_nothing else ExitStatus.OK


def _compare_with_export(settings: Settings, queue: WorkQueue, file: str) -> ExitStatus:
    """Compare a queue with the part of an export that has its items."""
    reader = ExportReader(
        settings.environment,
        file,
        strict=False,
        report=make_line_reporter(settings, file, "not compared"),
    )

    def items() -> Iterator[ItemSnapshot]:
        for name, lines in reader.queues():
            entries = (line.entry for line in lines if isinstance(line, Line))
            is_same = bool(reader.header.queue) or name == queue.name
            yield from (entry for entry in entries if is_same and isinstance(entry, ItemSnapshot))

    export = ExportedQueue(items(), queue.now_ms())
    has_differences = _show(settings, differences(queue, export), escaped(queue.name), reader.name)
    warn_missing(settings, queue)
    status = note_incompleteness(settings, reader)
    if has_differences or not (len(export) or exists(queue)):
        return ExitStatus.NO
    return ExitStatus.PARTIAL if reader.rejected else status


def _show(
    settings: Settings, all_differences: Iterable[Difference], label: str, other_label: str
) -> bool:
    """Show differences; return whether there are any."""
    kinds: Counter[str] = Counter()

    def counted() -> Iterator[Difference]:
        for difference in all_differences:
            kinds[difference.kind.value] += 1
            yield difference

    settings.out.table(
        counted(),
        DIFFERENCE_FIELDS,
        DIFFERENCE_COLUMNS,
        empty=f"No differences between {label} and {other_label}.",
    )
    counts = ", ".join(f"{kind.replace('-', ' ')} {number:,}" for kind, number in kinds.items())
    if counts or not settings.output.is_table:
        settings.environment.note(f"{counts or 'no differences'} ({label} and {other_label})")
    return bool(kinds)
