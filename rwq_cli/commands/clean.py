"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

from collections.abc import Callable, Iterator
from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming
from rwq_cli.cli.open_queues import open_matching_queues, warn_if_missing
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
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.actions import CleanBatch
from rwq_cli.core.repair.clean import deep_clean, light_clean
from rwq_cli.exit_codes import ExitCode, ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.outcomes import Outcomes, Parts
from rwq_cli.views.cleaning import CLEAN, CLEAN_FIELDS

app = CommandModule("Return what dead workers left behind.")

# Cleans a queue, deep or not.
Clean = Callable[[WorkQueue, bool], Iterator[CleanBatch]]

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
    record=CLEAN_FIELDS,
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
) -> ExitStatus:
    clean = _cleaner(grace_s=grace_s, bury_after=bury_after, dry_run=dry_run)
    if every is None:
        _need_every(deep_every=deep_every, notify=notify, listen=listen)
        return _clean_once(settings, clean, is_deep=False, all_queues=all_queues, dry_run=dry_run)
    from rwq_cli.commands.cleaning_process import CleaningProcess, Schedule

    schedule = Schedule(every, False, deep_every, notify, listen)
    return CleaningProcess(settings, schedule, clean, all_queues=all_queues, dry_run=dry_run).run()


@app.command(
    record=CLEAN_FIELDS,
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
) -> ExitStatus:
    clean = _cleaner(grace_s=grace_s, bury_after=bury_after, dry_run=dry_run)
    if every is None:
        _need_every(notify=notify, listen=listen)
        return _clean_once(settings, clean, is_deep=True, all_queues=all_queues, dry_run=dry_run)
    from rwq_cli.commands.cleaning_process import CleaningProcess, Schedule

    schedule = Schedule(every, True, None, notify, listen)
    return CleaningProcess(settings, schedule, clean, all_queues=all_queues, dry_run=dry_run).run()


def _need_every(**given: object) -> None:
    """Raise `InvalidArgument` if an option was given that needs `--every`."""
    for name, value in given.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidArgument(f"{flag} needs --every", "add --every 30s, or leave it out")


def _cleaner(*, grace_s: float, bury_after: int | None, dry_run: bool) -> Clean:
    """What cleans a queue, deep or not."""

    def clean(queue: WorkQueue, is_deep: bool) -> Iterator[CleanBatch]:
        work = deep_clean if is_deep else light_clean
        return work(queue, grace_s=grace_s, bury_after=bury_after, dry_run=dry_run).batches

    return clean


def _clean_once(
    settings: Settings, clean: Clean, *, is_deep: bool, all_queues: bool, dry_run: bool
) -> ExitStatus:
    opened = open_matching_queues(settings, all_queues=all_queues, changes=True)
    parts = None if opened.is_one else Parts(settings.output_options)
    status = ExitStatus.OK
    for queue in opened.queues:
        out = Outcomes(
            settings.output_options,
            CLEAN,
            queue.name,
            dry_run=dry_run,
            where=naming(settings, queue, is_prefixed=not opened.is_one).summary_end,
            parts=parts,
            name="" if opened.is_one else escaped(queue.name),
        )
        with out:
            for batch in opened.reader(
                settings,
                lambda queue: warn_if_missing(settings, queue, clean(queue, is_deep)),
                queue,
            ):
                out.rows(batch)
        status = out.finish()
    return status if parts is None else parts.finish()
