"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from random import random
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rwq_cli.cli import options
from rwq_cli.cli.connect import OpenQueues, summary_end, warn_if_missing
from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.commands import Duration, ExitStatus, Settings, command, option
from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanAction, Repair, clean as clean_queue
from rwq_cli.exit_codes import ExitCode
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.tally import NAMED_FAILURES, WORDS, OutcomeKind, OutcomeRecord, Tally

if TYPE_CHECKING:
    from rwq_cli.core.inspect.history import HistoryWriter
    from rwq_cli.output.exposition import Metric
    from rwq_cli.service.supervision import Beats

GROUP_HELP = "Return what dead workers left behind."

_REPAIRS = tuple(repair.value for repair in Repair)


CLEAN_FIELDS: Fields[OutcomeRecord[CleanAction]] = Fields(
    "A repair made by a clean",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "outcome.item_id", "the item's ID", ID),
    field("action", "outcome.action", "`returned`, `dropped`, `promoted`, `pruned` or `buried`"),
    field("state", "outcome.state", "the state that the item was in"),
    field("where", "outcome.where", "the key that was changed: `main`, `delayed` and so on"),
    field("dry_run", "dry_run", "whether nothing was changed"),
    is_stream=True,
    has_summary=True,
)
CLEAN: OutcomeKind[CleanAction] = OutcomeKind(
    CLEAN_FIELDS,
    word=lambda action: action.action.value,
    item_id=lambda action: action.item_id,
    counted=_REPAIRS,
    printed=frozenset(_REPAIRS),
    idle="nothing to clean",
    # For cron, which mails what is printed.
    news=frozenset(_REPAIRS),
    preview=lambda repair: (
        f"would {WORDS[repair.action].infinitive} {escaped(repair.item_id)}: {repair.state}"
    ),
)


# With --every, pruned entries alone are not worth a summary: they had no items.
_ROUND = CLEAN._replace(news=CLEAN.news - {Repair.PRUNED.value})
# How much longer than any call the process may be silent before it counts as stuck.
_MARGIN_S = 30.0


class CleanOptions(NamedTuple):
    """The options of both commands."""

    settings: Settings
    grace_s: options.GraceOption = options.DEFAULT_GRACE
    bury_after: Annotated[
        int | None, option("--bury-after N", "Bury items already returned N times.", min=0)
    ] = None
    dry_run: options.DryRunOption = False
    every: Annotated[
        Duration | None,
        option("--every DUR", "Clean about this often until stopped.", options.interval),
    ] = None
    notify: options.NotifyOption = False
    listen: options.ListenOption = None
    all_queues: options.AllQueuesOption = False


class Plan(NamedTuple):
    """How queues are cleaned, once or in rounds.

    Attributes:
        is_deep: Whether each clean is deep.
        deep_every: How often one is deep, if not each; None for never.
    """

    options: CleanOptions
    is_deep: bool
    deep_every: Duration | None = None

    def check(self) -> None:
        """Raise if the output would have no end."""
        if self.options.every is not None:
            self.options.settings.check_endless("--every")

    @property
    def kind(self) -> OutcomeKind[CleanAction]:
        return CLEAN if self.options.every is None else _ROUND

    def in_words(self, names: str) -> str:
        """Say which queues are cleaned how, and how often."""
        depth = "deep" if self.is_deep else "light"
        more = f" and a deep one every {self.deep_every}" if self.deep_every else ""
        return f"a {depth} clean of {names} every {self.options.every}{more}"

    def burial_notes(self, buried: Sequence[CleanAction]) -> list[str]:
        """Name items that were buried, with the reason, for people."""
        if self.options.dry_run or self.options.settings.output.is_machine_readable:
            return []
        reason = f"again, after {self.options.bury_after or 0:,} returns"
        return [
            f"rwq: {escaped(repair.item_id)}: buried: {repair.state} {reason}" for repair in buried
        ]


class Cleaning:
    """Cleans queues as planned; `actions` counts the repairs by queue and kind."""

    def __init__(self, plan: Plan, opened: OpenQueues) -> None:
        self._plan, self._opened = plan, opened
        self.actions: Counter[tuple[bytes, Repair]] = Counter()

    def clean(
        self,
        queue: WorkQueue,
        where: Callable[[], str],
        *,
        is_deep: bool,
        warns: bool = True,
        history: "HistoryWriter | None" = None,
    ) -> None:
        """Clean one queue."""
        options = self._plan.options

        def repairs(queue: WorkQueue) -> Iterator[list[CleanAction]]:
            batches = clean_queue(
                queue,
                deep=is_deep,
                grace_s=options.grace_s,
                bury_after=options.bury_after,
                dry_run=options.dry_run,
                history=history,
            )
            return warn_if_missing(options.settings, queue, batches) if warns else batches

        name = "" if self._opened.is_one else escaped(queue.name)
        tally = Tally(self._plan.kind, queue.name, dry_run=options.dry_run, where=where, name=name)
        with options.settings.out.begin_tally(tally) as out:
            buried: list[CleanAction] = []
            try:
                for batch in self._opened.read_one(repairs, queue):
                    out.report_batch(batch)
                    self.actions.update((queue.name, repair.action) for repair in batch)
                    buried += (repair for repair in batch if repair.action is Repair.BURIED)
                    del buried[NAMED_FAILURES:]
            except ServerError:
                if options.every is not None:
                    out.note_unfinished()
                raise
            for line in self._plan.burial_notes(buried):
                options.settings.environment.error(line)
        out.finish()


# The exit codes whose meaning --every changes.
_EXITS: dict[ExitCode, str] = {
    ExitStatus.OK: "done; with --every: stopped by SIGTERM",
    ExitStatus.SERVER: f"{ExitStatus.SERVER.meaning}; with --every, only if the server refuses",
}
_NEEDS = dict.fromkeys(("--deep-every", "--notify", "--listen"), "--every")


@command(record=CLEAN_FIELDS, exits=_EXITS, needs=_NEEDS)
def light(
    _: Settings,
    cleaning: CleanOptions,
    deep_every: Annotated[
        Duration | None,
        option("--deep-every DUR", "With --every: also a deep clean this often.", options.interval),
    ] = None,
) -> ExitStatus:
    """Return abandoned items and promote due ones; fast. Abandoned items are in processing without
    a lease; due ones were delayed until now.

    rwq clean light -q jobs
    rwq clean light -q jobs --dry-run -o jsonl
    rwq clean light --all-queues --bury-after 3
    rwq clean light -q jobs --every 30s --deep-every 6h
    """
    return _run(Plan(cleaning, is_deep=False, deep_every=deep_every))


@command(record=CLEAN_FIELDS, exits=_EXITS, needs=_NEEDS)
def deep(_: Settings, cleaning: CleanOptions) -> ExitStatus:
    """Do a light clean, then scan all keys to repair the rest. It returns orphaned items, which are
    in no list, drops ghosts, which have no data, and removes surplus entries of duplicated items.
    Rarely needed.

    rwq clean deep -q jobs --dry-run
    rwq clean deep -q jobs --grace 5s
    rwq clean deep -q jobs --bury-after 3
    """
    return _run(Plan(cleaning, is_deep=True))


def _run(plan: Plan) -> ExitStatus:
    plan.check()
    settings = plan.options.settings
    opened = OpenQueues(settings, all_queues=plan.options.all_queues, changes=True)
    if plan.options.every is not None:
        return _Rounds(plan, opened, plan.options.every).run()
    if not opened.find().is_one:
        settings.out.continue_until_end()
    cleaning = Cleaning(plan, opened)
    for queue in opened.queues:
        where = partial(summary_end, settings, escaped(queue.name) if opened.is_one else None)
        cleaning.clean(queue, where, is_deep=plan.is_deep)
    return settings.out.end()


class _Rounds:
    """A clean about as often as `every` says, until it is stopped."""

    def __init__(self, plan: Plan, opened: OpenQueues, every: Duration) -> None:
        from rwq_cli.commands.serving import Service

        self._plan, self._opened, self._every = plan, opened, every
        settings = plan.options.settings
        self._environment = settings.environment
        # A round that did something says so.
        settings.out.continue_until_end()
        settings.out.interrupted_text = ""
        self._cleaning = Cleaning(plan, opened)
        self._queues: list[WorkQueue] = []
        # The number of complete rounds by depth.
        self._rounds: Counter[str] = Counter()
        connection = opened.connection
        limits = (connection.connect_timeout_s, connection.reply_timeout_s, connection.patience_s)
        self._service = Service(
            settings,
            connection,
            lambda: self._queues,
            self._metrics,
            notify=plan.options.notify,
            listen=plan.options.listen,
            silence_s=_MARGIN_S + sum(limits),
        )

    def run(self) -> ExitStatus:
        from rwq_cli.core.clock import Clock
        from rwq_cli.service.supervision import Beats, Rounds, jittered

        opened, supervision = self._opened, self._service.supervision
        beats = Beats(Clock(), opened.connection.progress, supervision.beat)
        opened.connection.progress = beats
        rounds = Rounds(self._every, beats, supervision=supervision, note=self._note)
        deep_every_s = self._plan.deep_every or inf
        # Processes that start together should not run their deep cleans together.
        deep_at_s = beats.monotonic() + deep_every_s * random()
        with ending_on_terminate(), supervision:
            what, where = (
                self._plan.in_words(opened.names),
                self._plan.options.settings.server_label,
            )
            self._environment.note(f"rwq: running {what} on {where}")
            self._service.begin(counts_items=True)
            for number in rounds:
                is_deep = self._plan.is_deep or beats.monotonic() >= deep_at_s
                try:
                    self._clean(beats, is_deep=is_deep, warns=number == 1)
                except ServerError as error:
                    rounds.failed(error)
                    continue
                supervision.ready(self._status())
                # A deep clean that failed stays due.
                if is_deep:
                    deep_at_s = beats.monotonic() + jittered(deep_every_s)
        return ExitStatus.OK

    def _clean(self, beats: "Beats", *, is_deep: bool, warns: bool) -> None:
        """Clean all queues once."""
        opened = self._opened
        self._queues[:] = opened.find().queues
        for queue in self._queues:
            # On a cluster, each queue has a connection of its own.
            queue.clock = queue.connection.progress = beats
            self._cleaning.clean(
                queue,
                self._time,
                is_deep=is_deep,
                warns=warns,
                history=self._service.history,
            )
            # Raises if nobody reads the results any more.
            self._environment.stdout.flush()
        self._rounds["deep" if is_deep else "light"] += 1

    def _metrics(self) -> "list[Metric]":
        from rwq_cli.output.exposition import Metric

        # Copies, because the main loop goes on counting.
        rounds = [({"depth": depth}, number) for depth, number in self._rounds.copy().items()]
        repairs = [
            ({"queue": queue, "action": action.value}, number)
            for (queue, action), number in self._cleaning.actions.copy().items()
        ]
        return [
            Metric("clean_rounds_total", "Complete rounds of this process.", rounds, "counter"),
            Metric("cleaned_items_total", "Repairs by this process.", repairs, "counter"),
        ]

    def _note(self, line: str) -> None:
        self._environment.error(f"rwq: {line}")

    def _time(self) -> str:
        # Elsewhere, a logger such as journald adds the time.
        return time.strftime(" at %H:%M:%S") if self._environment.stderr_is_terminal else ""

    def _status(self) -> str:
        counts = dict.fromkeys(Repair, 0)
        for (_, action), number in self._cleaning.actions.items():
            counts[action] += number
        what = ", ".join(f"{action} {number:,}" for action, number in counts.items() if number)
        rounds = human.counted(self._rounds.total(), "round")
        return f"{self._opened.label}: {what or 'nothing to clean'} in {rounds}"
