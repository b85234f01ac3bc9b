"""`rwq stats`: a queue in numbers."""

from collections.abc import Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Detail, Listing, Report, Section
from rwq_cli.views.records import DEEP_COLUMNS, STATS_COLUMNS, counts_view

app = CommandModule()


@app.command(
    help="Count a queue's items by state, with ages, leases and sizes.",
    examples=(
        "rwq stats -q jobs",
        "rwq stats -q jobs --fast -o json",
        "rwq stats -q high -q low --deep",
    ),
    reads_only=True,
)
def stats(
    settings: Settings,
    fast: Annotated[
        bool, typer.Option("--fast", help="Only the lengths: costs the same however long they are.")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Walk the whole queue, to count orphans, duplicates, ghosts, stray leases, wrong "
            "types, returns and results, "
            "and of what was returned only what is still there.",
        ),
    ] = False,
) -> Report:
    if fast and deep:
        raise InvalidArgument("--fast and --deep exclude each other", "give one of them")
    names = settings.queues or [settings.queue]
    connection = open_connection(settings)

    def counted() -> Iterator[Counts]:
        for name in names:
            queue = WorkQueue(connection, name)
            counts = queue.lengths() if fast else queue.counts(deep=deep)
            if deep and counts.results is None:
                settings.environment.note(
                    "rwq: this user may not read results; they are not counted"
                )
            yield counts

    view = counts_view(DEEP_COLUMNS if deep else STATS_COLUMNS)
    if len(names) > 1:
        return Listing(view=view, records=counted(), empty="No queues.")
    return Detail(view=view, records=counted(), sections=_sections, one_only=True)


_ROWS = (
    ("waiting", "waiting", False),
    ("leased", "leased", False),
    ("abandoned", "abandoned", True),
    ("held", "held", True),
    ("delayed", "delayed", False),
    ("due", "due", False),
    ("buried", "buried", False),
    ("orphaned", "orphaned", True),
    ("unlisted", "unlisted", False),
    ("duplicated", "duplicated", True),
    ("ghosts", "ghosts", True),
    ("stray leases", "stray_leases", False),
    ("wrong types", "wrong_types", True),
)

# These are said only where there are any.
_RARE = ("returned", "returns", "results")


def _sections(counts: Counts) -> list[Section]:
    rows: list[tuple[str, str, str | None]] = []
    unknown = []
    for label, name, is_bad in _ROWS:
        number: int | None = getattr(counts, name)
        if number is None:
            unknown.append(label)
        else:
            rows.append((label, human.count(number), "red" if is_bad and number else None))
    for label in _RARE:
        number = getattr(counts, label)
        if number is None:
            unknown.append(label)
        elif number:
            rows.append((label, human.count(number), None))
    if counts.leased is None:
        rows.insert(1, ("processing", human.count(counts.processing), None))
    if unknown:
        how = "" if counts.leased is None else " (--deep counts them)"
        rows.append(("not counted", ", ".join(unknown) + how, "dim"))
    sections = [Section(escaped(counts.queue), rows, numbers=True)]
    more: list[tuple[str, str, str | None]] = []
    if counts.oldest_waiting_s is not None:
        more.append(("next item", f"last used {human.ago(counts.oldest_waiting_s)}", None))
    if counts.lease_soonest_ms is not None and counts.lease_latest_ms is not None:
        soonest = human.duration(counts.lease_soonest_ms / 1000)
        latest = human.duration(counts.lease_latest_ms / 1000)
        when = soonest if soonest == latest else f"{soonest} to {latest}"
        more.append(("leases end", f"in {when}", None))
    if counts.payload_sampled:
        smallest, median, largest = (
            human.size(counts.payload_min_bytes),
            human.size(counts.payload_median_bytes),
            human.size(counts.payload_max_bytes),
        )
        sampled = f"(a sample of {human.count(counts.payload_sampled)} waiting)"
        more.append(("payloads", f"{smallest} to {largest}, median {median} {sampled}", None))
    return [*sections, Section("", more)] if more else sections
