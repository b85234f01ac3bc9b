"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, NamedTuple

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming
from rwq_cli.cli.open_queues import open_matching_queues
from rwq_cli.cli.options import (
    DEFAULT_GRACE,
    AllQueuesOption,
    DryRunOption,
    Duration,
    GraceOption,
    ListenOption,
    NotifyOption,
    interval,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import CleanAction, CleanBatch
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import deep_clean, light_clean
from rwq_cli.exit_codes import ExitCode, ExitStatus
from rwq_cli.output.report import Batch, Report
from rwq_cli.views.cleaning import clean_report

app = CommandModule("Return what dead workers left behind.")

BuryAfterOption = Annotated[
    int | None,
    option(
        "--bury-after N",
        "Bury an item instead of returning it if it has already been returned N times, by cleans "
        "or after failed attempts.",
        min=0,
    ),
]


EveryOption = Annotated[
    Duration | None,
    option(
        "--every DUR",
        "Clean about this often until stopped; if the server is lost, wait for it.",
        interval,
    ),
]
DeepEveryOption = Annotated[
    Duration | None,
    option("--deep-every DUR", "With --every: also a deep clean about this often.", interval),
]
# What --every changes.
_EXITS: dict[ExitCode, str] = {
    ExitStatus.OK: "done; with --every: stopped by SIGTERM",
    ExitStatus.SERVER: f"{ExitStatus.SERVER.meaning}; with --every, only if the server refuses",
}


@app.command(
    help="Return abandoned items and promote due ones; fast. Abandoned items are in "
    "processing without a lease; due ones were delayed until now.",
    examples=(
        "rwq clean light -q jobs",
        "rwq clean light -q jobs --dry-run -o jsonl",
        "rwq clean light --all-queues --bury-after 3",
        "rwq clean light -q jobs --every 30s --deep-every 6h",
    ),
    exits=_EXITS,
)
def light(
    settings: Settings,
    grace_s: GraceOption = DEFAULT_GRACE,
    bury_after: BuryAfterOption = None,
    dry_run: DryRunOption = False,
    every: EveryOption = None,
    deep_every: DeepEveryOption = None,
    notify: NotifyOption = False,
    listen: ListenOption = None,
    all_queues: AllQueuesOption = False,
) -> Report:
    cleaner = _Cleaner(grace_s, bury_after, dry_run)
    if every is None:
        _need_every(deep_every=deep_every, notify=notify, listen=listen)
        return _clean_once(settings, cleaner, is_deep=False, all_queues=all_queues)
    from rwq_cli.commands.cleaning_process import CleaningProcess, Schedule

    schedule = Schedule(every, False, deep_every, notify, listen)
    return CleaningProcess(settings, schedule, cleaner, all_queues=all_queues).report()


@app.command(
    help="Do a light clean, then scan all keys to repair the rest. It returns "
    "orphaned items, which are in no list, drops ghosts, which have no data, and removes surplus "
    "entries of duplicated items. Rarely needed.",
    examples=(
        "rwq clean deep -q jobs --dry-run",
        "rwq clean deep -q jobs --grace 5s",
        "rwq clean deep -q jobs --bury-after 3",
    ),
    exits=_EXITS,
)
def deep(
    settings: Settings,
    grace_s: GraceOption = DEFAULT_GRACE,
    bury_after: BuryAfterOption = None,
    dry_run: DryRunOption = False,
    every: EveryOption = None,
    notify: NotifyOption = False,
    listen: ListenOption = None,
    all_queues: AllQueuesOption = False,
) -> Report:
    cleaner = _Cleaner(grace_s, bury_after, dry_run)
    if every is None:
        _need_every(notify=notify, listen=listen)
        return _clean_once(settings, cleaner, is_deep=True, all_queues=all_queues)
    from rwq_cli.commands.cleaning_process import CleaningProcess, Schedule

    schedule = Schedule(every, True, None, notify, listen)
    return CleaningProcess(settings, schedule, cleaner, all_queues=all_queues).report()


def _need_every(**given: object) -> None:
    """Raise `InvalidArgument` if an option was given that needs `--every`."""
    for name, value in given.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidArgument(f"{flag} needs --every", "add --every 30s, or leave it out")


class _Cleaner(NamedTuple):
    """Cleans a queue.

    Attributes:
        grace_s: Seconds between the two looks.
        bury_after: After how many returns to bury an item; None for never.
        dry_run: Whether to change nothing.
    """

    grace_s: float
    bury_after: int | None
    dry_run: bool

    def __call__(self, queue: WorkQueue, is_deep: bool) -> Iterator[CleanBatch]:
        clean = partial(deep_clean if is_deep else light_clean, queue)
        actions = clean(grace_s=self.grace_s, dry_run=self.dry_run, bury_after=self.bury_after)
        return actions.batches


def _clean_once(
    settings: Settings, cleaner: _Cleaner, *, is_deep: bool, all_queues: bool
) -> Report:
    def clean(queue: WorkQueue) -> Iterator[CleanBatch]:
        return noting_absence(settings, queue, cleaner(queue, is_deep))

    opened = open_matching_queues(settings, all_queues=all_queues, changes=True)

    def report(queue: WorkQueue) -> Batch[CleanAction]:
        summary_end = naming(settings, queue, is_prefixed=not opened.is_one).summary_end
        batches = opened.reader(settings, clean, queue)
        return clean_report(queue.name, batches, summary_end=summary_end, dry_run=cleaner.dry_run)

    return opened.reports(report)
