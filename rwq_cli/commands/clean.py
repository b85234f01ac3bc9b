"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from random import random
from typing import Annotated, NamedTuple

from rwq_cli.cli.command import command, provided
from rwq_cli.cli.connect import summary_end
from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.open_queues import OpenQueues, warn_if_missing
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
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanAction, Repair, clean as clean_queue
from rwq_cli.exit_codes import ExitCode, ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.outcomes import WORDS, Kind, Outcomes, Parts, Row

GROUP_HELP = "Return what dead workers left behind."

_REPAIRS = tuple(repair.value for repair in Repair)


def _preview(action: CleanAction) -> str:
    verb = WORDS[action.action.value].infinitive
    return f"would {verb} {escaped(action.item_id)}: {action.state.value}"


CLEAN_FIELDS: Fields[Row[CleanAction]] = Fields(
    "A repair of a clean",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "what.item_id", "the item's ID", ID),
    field("action", "what.action", "`returned`, `dropped`, `promoted`, `pruned` or `buried`"),
    field("state", "what.state", "the state that the item was in"),
    field(
        "where",
        "what.where",
        "the key that was changed: `main`, `processing`, `delayed`, and so on",
    ),
    field("dry_run", "dry_run", "whether nothing was changed"),
    is_stream=True,
)
CLEAN: Kind[CleanAction] = Kind(
    CLEAN_FIELDS,
    word=lambda action: action.action.value,
    item_id=lambda action: action.item_id,
    counted=_REPAIRS,
    shown=frozenset(_REPAIRS),
    idle="nothing to clean",
    # For cron, which mails what is printed.
    news=frozenset(_REPAIRS),
    preview=_preview,
)


# What a round of --every only prunes is no news: it was no item.
_ROUND = CLEAN._replace(news=CLEAN.news - {Repair.PRUNED.value})
# How much longer than any call the process may be silent before it counts as stuck.
_MARGIN_S = 30.0


class Cleaning(NamedTuple):
    """How to clean: the options of both commands."""

    settings: Settings
    grace_s: GraceOption = DEFAULT_GRACE
    bury_after: Annotated[
        int | None, option("--bury-after N", "Bury what was returned N times already.", min=0)
    ] = None
    dry_run: DryRunOption = False
    every: Annotated[
        Duration | None, option("--every DUR", "Clean about this often until stopped.", interval)
    ] = None
    notify: NotifyOption = False
    listen: ListenOption = None
    all_queues: AllQueuesOption = False

    def open(self) -> OpenQueues:
        return OpenQueues(self.settings, all_queues=self.all_queues, changes=True)

    def outcomes(
        self,
        opened: OpenQueues,
        queue: WorkQueue,
        kind: Kind[CleanAction],
        where: Callable[[], str],
        parts: Parts | None,
    ) -> Outcomes[CleanAction]:
        return Outcomes(
            self.settings.output_options,
            kind,
            queue.name,
            dry_run=self.dry_run,
            where=where,
            parts=parts,
            name="" if opened.is_one else escaped(queue.name),
        )

    def batches(
        self, opened: OpenQueues, queue: WorkQueue, *, is_deep: bool, warns: bool = True
    ) -> Iterator[list[CleanAction]]:
        def clean(queue: WorkQueue) -> Iterator[list[CleanAction]]:
            found = clean_queue(
                queue,
                deep=is_deep,
                grace_s=self.grace_s,
                bury_after=self.bury_after,
                dry_run=self.dry_run,
            )
            return warn_if_missing(self.settings, queue, found) if warns else found

        return opened.reader(clean, queue)


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
def light(
    _settings: Settings, cleaning: Cleaning, deep_every: DeepEveryOption = None
) -> ExitStatus:
    return _clean(cleaning, deep_every=deep_every, is_deep=False)


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
def deep(_: Settings, cleaning: Cleaning) -> ExitStatus:
    return _clean(cleaning, is_deep=True)


def _clean(cleaning: Cleaning, *, deep_every: Duration | None = None, is_deep: bool) -> ExitStatus:
    if cleaning.every is not None:
        return _clean_until_stopped(cleaning, deep_every, is_deep=is_deep)
    given = {"--deep-every": deep_every, "--notify": cleaning.notify, "--listen": cleaning.listen}
    for flag in (flag for flag, value in given.items() if value):
        raise InvalidArgument(f"{flag} needs --every", "add --every 30s, or leave it out")
    opened = cleaning.open().find()
    parts = None if opened.is_one else Parts(cleaning.settings.output_options)
    status = ExitStatus.OK
    for queue in opened.queues:
        where = partial(
            summary_end, cleaning.settings, escaped(queue.name) if opened.is_one else None
        )
        with cleaning.outcomes(opened, queue, CLEAN, where, parts) as out:
            for batch in cleaning.batches(opened, queue, is_deep=is_deep):
                out.rows(batch)
        status = out.finish()
    return status if parts is None else parts.finish()


def _clean_until_stopped(
    cleaning: Cleaning, deep_every: Duration | None, *, is_deep: bool
) -> ExitStatus:
    from rwq_cli.core.clock import Clock
    from rwq_cli.output.exposition import Metric
    from rwq_cli.service.rounds import Rounds, jittered
    from rwq_cli.service.supervision import Beats, Supervision
    from rwq_cli.views.monitoring import queue_scraper

    settings = cleaning.settings
    environment = settings.environment
    settings.check_endless("--every")
    # A round that did something says so.
    environment.interrupted = ""
    assert cleaning.every is not None
    parts, opened = Parts(settings.output_options), cleaning.open()
    queues: list[WorkQueue] = []
    # How many rounds are complete, by their depth, and what was done, by queue.
    done: Counter[str] = Counter()
    actions: Counter[tuple[bytes, Repair]] = Counter()
    connection = opened.connection
    read_counts = queue_scraper(connection)

    def metrics() -> list[Metric]:
        # The main loop goes on meanwhile.
        rounds = [({"depth": depth}, number) for depth, number in done.copy().items()]
        repairs = [
            ({"queue": queue, "action": action.value}, number)
            for (queue, action), number in actions.copy().items()
        ]
        return [
            *read_counts(queues),
            Metric("clean_rounds_total", "Complete rounds of this process.", rounds, "counter"),
            Metric("cleaned_items_total", "Repairs by this process.", repairs, "counter"),
        ]

    supervision = Supervision(
        notifies=cleaning.notify,
        address=cleaning.listen,
        variables=environment.variables,
        metrics=metrics,
        silence_s=_MARGIN_S
        + settings.connect_timeout_s
        + settings.reply_timeout_s
        + settings.patience_s,
    )
    beats = Beats(Clock(), connection.progress, supervision.beat)
    connection.progress = beats
    rounds = Rounds(
        cleaning.every,
        beats,
        supervision=supervision,
        note=lambda line: environment.error(f"rwq: {line}"),
    )

    def when() -> str:
        # Elsewhere, a logger such as journald adds the time.
        return time.strftime(" at %H:%M:%S") if environment.stderr_is_terminal else ""

    def clean_one(queue: WorkQueue, *, is_deep: bool, is_first: bool) -> None:
        # On a cluster, each queue has a connection of its own.
        queue.clock = queue.connection.progress = beats
        with cleaning.outcomes(opened, queue, _ROUND, when, parts) as out:
            try:
                for batch in cleaning.batches(opened, queue, is_deep=is_deep, warns=is_first):
                    out.rows(batch)
                    actions.update((queue.name, each.action) for each in batch)
            except ServerError:
                out.note_unfinished()
                raise
        out.finish()
        # Raises if nobody reads the results any more.
        environment.stdout.flush()

    def status() -> str:
        counts = {r: sum(n for (_, each), n in actions.items() if each is r) for r in Repair}
        what = ", ".join(f"{word} {number:,}" for word, number in counts.items() if number)
        number = f"{done.total():,} round{'' if done.total() == 1 else 's'}"
        return f"{opened.label}: {what or 'nothing to clean'} in {number}"

    every_s = deep_every or inf
    # Processes that start together do not clean deeply together.
    deep_at_s = beats.monotonic() + every_s * random()
    with ending_on_terminate(), supervision:
        depth = "deep" if is_deep else "light"
        more = f" and a deep one every {deep_every}" if deep_every else ""
        environment.note(
            f"rwq: running a {depth} clean of {opened.names} every {cleaning.every}{more} "
            f"on {settings.server_label}"
        )
        if supervision.url is not None:
            environment.note(f"rwq: listening on {supervision.url}")
        for round_number in rounds:
            goes_deep = is_deep or beats.monotonic() >= deep_at_s
            try:
                queues[:] = opened.find().queues
                for queue in queues:
                    clean_one(queue, is_deep=goes_deep, is_first=round_number == 1)
                done["deep" if goes_deep else "light"] += 1
                supervision.ready(status())
                # One that failed is due again.
                if goes_deep:
                    deep_at_s = beats.monotonic() + jittered(every_s)
            except ServerError as error:
                rounds.failed(error)
    return ExitStatus.OK
