"""`rwq export`: write a queue as JSON lines."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from rwq_cli.cli.absence import note_if_absent
from rwq_cli.cli.choosing import Choice, SelectionScope
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.exporting import Export
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import Header, entry_line, header_line, item_view
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import Report, Stream

app = CommandModule()


# The formats that write the lines of an export, which include results.
_WITH_RESULTS = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.PLAIN, OutputFormat.JSONL)
_SCOPE = SelectionScope(default=ITEMS, everything=ITEMS, offered=ITEMS, defaults_to_all=True)


@app.command(
    help="Write a whole queue to stdout, as JSON lines that rwq import reads: its items, then its "
    "results. Safe beside live workers: each item is written as it was at one instant. IDs, or "
    "options other than --all, select items; results are then omitted, as they are in the formats "
    "json, csv, ids and data.",
    examples=(
        "rwq export -q jobs > jobs.jsonl",
        "rwq export -q jobs --state abandoned --match '\"user\": *42' > some.jsonl",
        "rwq export -q jobs | rwq import -q jobs-copy -",
    ),
    exits={
        ExitStatus.NO: "nothing was exported: no such items, or all have a key of the wrong type",
        ExitStatus.PARTIAL: "some items were skipped: they do not exist, or have a key of the "
        "wrong type",
    },
    reads_only=True,
)
def export(settings: Settings, choice: Annotated[Choice, _SCOPE]) -> Report:
    # Another default from RWQ_OUTPUT would write a backup that import cannot read.
    settings.given.setdefault("output", OutputFormat.JSONL)
    queue = open_queue(settings)
    chosen: frozenset[bytes] | None = None
    if not choice.is_whole_queue:
        ids = choice.chosen(queue, settings).ids
        chosen = frozenset(item_id for item_id in ids if not isinstance(item_id, Flush))
    run = queue.export(chosen)

    def missing(exported: int) -> int:
        """How many of the named items do not exist."""
        if chosen is None or not choice.by_name:
            return 0
        return len(chosen) - exported - len(run.skipped.wrong_types)

    def everything() -> Iterator[Sequence[ItemSnapshot | Result]]:
        yield from run.batches()
        if chosen is not None or settings.output not in _WITH_RESULTS or settings.fields:
            return
        try:
            yield from run.results()
        except PermissionDenied:
            settings.environment.note("rwq: this user may not read results; none are in the export")

    def summary(written: int) -> str:
        exported = written - run.results_read
        if not (written or run.skipped.wrong_keys):
            note_if_absent(settings, queue)
        for key in run.skipped.wrong_keys:
            settings.environment.error(f"rwq: {escaped(key)} has the wrong type; not exported")
        not_found = missing(exported)
        counts = f", missing {human.count(not_found)}" if not_found else ""
        if run.results_read:
            counts += f", results {human.count(run.results_read)}"
        skipped = _skipped_text(run, has_missing=choice.by_name)
        return f"exported {human.count(exported)}{counts}{skipped}"

    def status(exported: int) -> ExitStatus:
        if not (run.skipped.wrong_types or missing(exported)):
            return ExitStatus.OK
        return ExitStatus.PARTIAL if exported else ExitStatus.NO

    return Stream(
        view=item_view(),
        batches=everything(),
        header=header_line(Header(run.queue, run.exported_ms)),
        line=entry_line,
        summary=summary,
        status=status,
    )


def _skipped_text(run: Export, *, has_missing: bool) -> str:
    """The part of the summary on entries that were skipped.

    Args:
        run: The export.
        has_missing: Whether IDs without data are counted as missing already.
    """
    counts = (
        (len(run.skipped.wrong_types), "of a wrong type"),
        (0 if has_missing else len(run.skipped.missing), "without data"),
        (run.skipped.stray_leases, "stray leases"),
    )
    texts = [f"{human.count(number)} {kind}" for number, kind in counts if number]
    return f"; left out {', '.join(texts)}" if texts else ""
