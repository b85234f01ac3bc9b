"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from random import random
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rwq_cli.cli import options
from rwq_cli.cli.connect import OpenQueues, describe_target, warn_if_missing
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

    def burial_notes(self, buried: Sequence[CleanAction]) -> list[str]:
        """Name items that were buried, with the reason, for people."""
        if self.dry_run or self.settings.output.is_machine_readable:
            return []
        reason = f"again, after {self.bury_after or 0:,} returns"
        return [
            f"rwq: {escaped(repair.item_id)}: buried: {repair.state} {reason}" for repair in buried
        ]


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
    return _run(cleaning, is_deep=False, deep_every=deep_every)


@command(record=CLEAN_FIELDS, exits=_EXITS, needs=_NEEDS)
def deep(_: Settings, cleaning: CleanOptions) -> ExitStatus:
    """Do a light clean, then scan all keys to repair the rest. It returns orphaned items, which are
    in no list, drops ghosts, which have no data, and removes surplus entries of duplicated items.
    Rarely needed.

    rwq clean deep -q jobs --dry-run
    rwq clean deep -q jobs --grace 5s
    rwq clean deep -q jobs --bury-after 3
    """
    return _run(cleaning, is_deep=True)


def _run(options: CleanOptions, *, is_deep: bool, deep_every: Duration | None = None) -> ExitStatus:
    if options.every is None:
        return Cleaner(options, is_deep=is_deep).run()
    return RoundsCleaner(options, options.every, is_deep=is_deep, deep_every=deep_every).run()


class Cleaner:
    """Cleans queues, once each, and counts the repairs by queue and kind."""

    kind = CLEAN

    def __init__(self, options: CleanOptions, *, is_deep: bool) -> None:
        self._options, self._is_deep = options, is_deep
        self._settings, self._environment = options.settings, options.settings.environment
        self._opened = OpenQueues(self._settings, all_queues=options.all_queues, changes=True)
        self._actions: Counter[tuple[bytes, Repair]] = Counter()

    def run(self) -> ExitStatus:
        opened, out = self._opened.find(), self._settings.out
        if not opened.is_one:
            out.continue_until_end()
        for queue in opened.queues:
            name = escaped(queue.name) if opened.is_one else None
            where = partial(describe_target, self._settings, name)
            self._clean(queue, where, is_deep=self._is_deep)
        return out.end()

    def _clean(
        self,
        queue: WorkQueue,
        where: Callable[[], str],
        *,
        is_deep: bool,
        warns: bool = True,
        history: "HistoryWriter | None" = None,
    ) -> None:
        """Clean one queue."""
        options = self._options

        def repairs(queue: WorkQueue) -> Iterator[list[CleanAction]]:
            batches = clean_queue(
                queue,
                deep=is_deep,
                grace_s=options.grace_s,
                bury_after=options.bury_after,
                dry_run=options.dry_run,
                history=history,
            )
            return warn_if_missing(self._settings, queue, batches) if warns else batches

        name = "" if self._opened.is_one else escaped(queue.name)
        tally = Tally(self.kind, queue.name, dry_run=options.dry_run, where=where, name=name)
        with self._settings.out.begin_tally(tally) as out:
            buried: list[CleanAction] = []
            try:
                for batch in self._opened.read_one(repairs, queue):
                    out.report_batch(batch)
                    self._actions.update((queue.name, repair.action) for repair in batch)
                    buried += (repair for repair in batch if repair.action is Repair.BURIED)
                    del buried[NAMED_FAILURES:]
            except ServerError:
                if options.every is not None:
                    out.note_unfinished()
                raise
            for line in options.burial_notes(buried):
                self._environment.error(line)
        out.finish()


class RoundsCleaner(Cleaner):
    """Cleans queues about as often as `--every` says, until it is stopped.

    Args:
        deep_every: How often a clean is deep, if not each is; None for never.
    """

    kind = _ROUND

    def __init__(
        self,
        options: CleanOptions,
        every: Duration,
        *,
        is_deep: bool,
        deep_every: Duration | None = None,
    ) -> None:
        options.settings.check_endless("--every")
        super().__init__(options, is_deep=is_deep)
        from rwq_cli.commands.serving import Service

        self._every, self._deep_every = every, deep_every
        # A round that did something says so.
        self._settings.out.continue_until_end()
        self._settings.out.interrupted_text = ""
        self._queues: list[WorkQueue] = []
        # The number of complete rounds by depth.
        self._rounds: Counter[str] = Counter()
        connection = self._opened.connection
        limits = (connection.connect_timeout_s, connection.reply_timeout_s, connection.patience_s)
        self._service = Service(
            self._settings,
            connection,
            lambda: self._queues,
            self._metrics,
            notify=options.notify,
            listen=options.listen,
            silence_s=_MARGIN_S + sum(limits),
        )

    def run(self) -> ExitStatus:
        from rwq_cli.core.clock import Clock
        from rwq_cli.service.supervision import Beats, Rounds, jittered

        connection, supervision = self._opened.connection, self._service.supervision
        beats = Beats(Clock(), connection.progress, supervision.beat)
        connection.progress = beats
        rounds = Rounds(self._every, beats, supervision=supervision, note=self._note)
        deep_every_s = self._deep_every or inf
        # Processes that start together should not run their deep cleans together.
        deep_at_s = beats.monotonic() + deep_every_s * random()
        with ending_on_terminate(), supervision:
            where = self._settings.server_label
            self._environment.note(f"rwq: running {self.in_words()} on {where}")
            self._service.begin(counts_items=True)
            for number in rounds:
                is_deep = self._is_deep or beats.monotonic() >= deep_at_s
                try:
                    self._clean_all(beats, is_deep=is_deep, warns=number == 1)
                except ServerError as error:
                    rounds.failed(error)
                    continue
                supervision.ready(self._status())
                # A deep clean that failed stays due.
                if is_deep:
                    deep_at_s = beats.monotonic() + jittered(deep_every_s)
        return ExitStatus.OK

    def in_words(self) -> str:
        """Say which queues are cleaned how, and how often."""
        depth = "deep" if self._is_deep else "light"
        more = f" and a deep one every {self._deep_every}" if self._deep_every else ""
        return f"a {depth} clean of {self._opened.names} every {self._every}{more}"

    def _clean_all(self, beats: "Beats", *, is_deep: bool, warns: bool) -> None:
        """Clean all queues once."""
        self._queues[:] = self._opened.find().queues
        for queue in self._queues:
            # On a cluster, each queue has a connection of its own.
            queue.clock = queue.connection.progress = beats
            history = self._service.history
            self._clean(queue, self._time, is_deep=is_deep, warns=warns, history=history)
            # Raises if nobody reads the results any more.
            self._environment.stdout.flush()
        self._rounds["deep" if is_deep else "light"] += 1

    def _metrics(self) -> "list[Metric]":
        from rwq_cli.output.exposition import Metric

        # Copies, because the main loop goes on counting.
        rounds = [({"depth": depth}, number) for depth, number in self._rounds.copy().items()]
        repairs = [
            ({"queue": queue, "action": action.value}, number)
            for (queue, action), number in self._actions.copy().items()
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
        for (_, action), number in self._actions.items():
            counts[action] += number
        what = ", ".join(f"{action} {number:,}" for action, number in counts.items() if number)
        rounds = human.counted(self._rounds.total(), "round")
        return f"{self._opened.label}: {what or 'nothing to clean'} in {rounds}"
