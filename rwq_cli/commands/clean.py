"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from rwq_cli.cli.command import command, provided
from rwq_cli.cli.connect import summary_end
from rwq_cli.cli.open_queues import OpenQueues, warn_if_missing
from rwq_cli.cli.options import Duration, interval, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.cleaning import CLEAN, CLEAN_FIELDS, Cleaning
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanBatch
from rwq_cli.exit_codes import ExitCode, ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.outcomes import Outcomes, Parts

GROUP_HELP = "Return what dead workers left behind."

DeepEveryOption = Annotated[
    Duration | None,
    option("--deep-every DUR", "With --every: also a deep clean about this often.", interval),
]
# What --every changes.
_EXITS: dict[ExitCode, str] = {
    ExitStatus.OK: "done; with --every: stopped by SIGTERM",
    ExitStatus.SERVER: f"{ExitStatus.SERVER.meaning}; with --every, only if the server refuses",
}


@command(
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
@provided("cleaning", Cleaning)
def light(settings: Settings, cleaning: Cleaning, deep_every: DeepEveryOption = None) -> ExitStatus:
    return _clean(settings, cleaning, deep_every=deep_every, is_deep=False)


@command(
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
@provided("cleaning", Cleaning)
def deep(settings: Settings, cleaning: Cleaning) -> ExitStatus:
    return _clean(settings, cleaning, deep_every=None, is_deep=True)


def _clean(
    settings: Settings, cleaning: Cleaning, *, deep_every: Duration | None, is_deep: bool
) -> ExitStatus:
    if cleaning.every is not None:
        from rwq_cli.commands.cleaning_process import CleaningProcess

        return CleaningProcess(settings, cleaning, deep_every, is_deep=is_deep).run()
    given = {"--deep-every": deep_every, "--notify": cleaning.notify, "--listen": cleaning.listen}
    for flag in (flag for flag, value in given.items() if value):
        raise InvalidArgument(f"{flag} needs --every", "add --every 30s, or leave it out")
    opened = OpenQueues(settings, all_queues=cleaning.all_queues, changes=True).find()
    parts = None if opened.is_one else Parts(settings.output_options)
    status = ExitStatus.OK

    def clean(queue: WorkQueue) -> Iterator[CleanBatch]:
        return warn_if_missing(settings, queue, cleaning.batches(queue, is_deep=is_deep))

    for queue in opened.queues:
        with Outcomes(
            settings.output_options,
            CLEAN,
            queue.name,
            dry_run=cleaning.dry_run,
            where=partial(summary_end, settings, queue, is_prefixed=not opened.is_one),
            parts=parts,
            name="" if opened.is_one else escaped(queue.name),
        ) as out:
            for batch in opened.reader(clean, queue):
                out.rows(batch)
        status = out.finish()
    return status if parts is None else parts.finish()
