"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from random import random
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rwq_cli.cli import options
from rwq_cli.cli.command import provided
from rwq_cli.cli.connect import OpenQueues, summary_end, warn_if_missing
from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.commands import Duration, ExitStatus, Settings, command, option
from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanAction, Repair, clean as clean_queue
from rwq_cli.exit_codes import ExitCode
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.tally import NAMED_FAILURES, WORDS, Kind, Row, Tally

if TYPE_CHECKING:
    from rwq_cli.core.inspect.history import HistoryWriter
    from rwq_cli.output.exposition import Metric
    from rwq_cli.service.supervision import Beats

GROUP_HELP = "Return what dead workers left behind."

_REPAIRS = tuple(repair.value for repair in Repair)


CLEAN_FIELDS: Fields[Row[CleanAction]] = Fields(
    "A repair made by a clean",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "what.item_id", "the item's ID", ID),
    field("action", "what.action", "`returned`, `dropped`, `promoted`, `pruned` or `buried`"),
    field("state", "what.state", "the state that the item was in"),
    field("where", "what.where", "the key that was changed: `main`, `delayed` and so on"),
    field("dry_run", "dry_run", "whether nothing was changed"),
    is_stream=True,
    has_summary=True,
)
CLEAN: Kind[CleanAction] = Kind(
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


class Cleaning(NamedTuple):
    """How to clean: the options of both commands."""

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

    def clean(
        self,
        opened: OpenQueues,
        queue: WorkQueue,
        where: Callable[[], str],
        actions: Counter[tuple[bytes, Repair]],
        *,
        deep: bool,
        warns: bool = True,
        history: "HistoryWriter | None" = None,
    ) -> None:
        """Clean one queue; `actions` counts the repairs of all rounds."""

        def repairs(queue: WorkQueue) -> Iterator[list[CleanAction]]:
            batches = clean_queue(
                queue,
                deep=deep,
                grace_s=self.grace_s,
                bury_after=self.bury_after,
                dry_run=self.dry_run,
                history=history,
            )
            return warn_if_missing(self.settings, queue, batches) if warns else batches

        name = "" if opened.is_one else escaped(queue.name)
        kind = CLEAN if self.every is None else _ROUND
        tally = Tally(kind, queue.name, dry_run=self.dry_run, where=where, name=name)
        with self.settings.out.report(tally) as out:
            buried: list[CleanAction] = []
            try:
                for batch in opened.reader(repairs, queue):
                    out.rows(batch)
                    actions.update((queue.name, repair.action) for repair in batch)
                    buried += (repair for repair in batch if repair.action is Repair.BURIED)
                    del buried[NAMED_FAILURES:]
            except ServerError:
                if self.every is not None:
                    out.note_unfinished()
                raise
            self._name(buried)
        out.finish()

    def _name(self, buried: list[CleanAction]) -> None:
        """Name the first items that were buried, with the reason, for people."""
        if self.dry_run or self.settings.output.is_machine_readable:
            return
        for repair in buried:
            reason = f"{repair.state} again, after {self.bury_after:,} returns"
            self.settings.environment.error(f"rwq: {escaped(repair.item_id)}: buried: {reason}")


# The exit codes whose meaning --every changes.
_EXITS: dict[ExitCode, str] = {
    ExitStatus.OK: "done; with --every: stopped by SIGTERM",
    ExitStatus.SERVER: f"{ExitStatus.SERVER.meaning}; with --every, only if the server refuses",
}
_NEEDS = dict.fromkeys(("--deep-every", "--notify", "--listen"), "--every")


@command(record=CLEAN_FIELDS, exits=_EXITS, needs=_NEEDS)
@provided("cleaning", Cleaning)
def light(
    _: Settings,
    cleaning: Cleaning,
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
    return _clean(cleaning, deep_every=deep_every, deep=False)


@command(record=CLEAN_FIELDS, exits=_EXITS, needs=_NEEDS)
@provided("cleaning", Cleaning)
def deep(_: Settings, cleaning: Cleaning) -> ExitStatus:
    """Do a light clean, then scan all keys to repair the rest. It returns orphaned items, which are
    in no list, drops ghosts, which have no data, and removes surplus entries of duplicated items.
    Rarely needed.

    rwq clean deep -q jobs --dry-run
    rwq clean deep -q jobs --grace 5s
    rwq clean deep -q jobs --bury-after 3
    """
    return _clean(cleaning, deep=True)


def _clean(cleaning: Cleaning, *, deep_every: Duration | None = None, deep: bool) -> ExitStatus:
    settings = cleaning.settings
    if cleaning.every is not None:
        settings.check_endless("--every")
    opened = OpenQueues(settings, all_queues=cleaning.all_queues, changes=True)
    if cleaning.every is not None:
        return _Rounds(cleaning, opened, cleaning.every, deep_every, deep=deep).run()
    if not opened.find().is_one:
        settings.out.continue_until_end()
    for queue in opened.queues:
        where = partial(summary_end, settings, escaped(queue.name) if opened.is_one else None)
        cleaning.clean(opened, queue, where, Counter(), deep=deep)
    return settings.out.end()


class _Rounds:
    """A clean again and again, until it is stopped.

    Args:
        cleaning: How to clean.
        opened: The queues.
        every: How often, about.
        deep_every: How often deeply, too; None for never.
        deep: Whether each clean is deep.
    """

    def __init__(
        self,
        cleaning: Cleaning,
        opened: OpenQueues,
        every: Duration,
        deep_every: Duration | None,
        *,
        deep: bool,
    ) -> None:
        from rwq_cli.commands.serving import Service

        self._cleaning, self._opened = cleaning, opened
        self._every, self._deep_every, self._deep = every, deep_every, deep
        self._environment = cleaning.settings.environment
        # A round that did something says so.
        cleaning.settings.out.continue_until_end(nothing="")
        self._queues: list[WorkQueue] = []
        # The number of complete rounds by depth, and of repairs by queue and action.
        self._rounds: Counter[str] = Counter()
        self._actions: Counter[tuple[bytes, Repair]] = Counter()
        connection = opened.connection
        limits = (connection.connect_timeout_s, connection.reply_timeout_s, connection.patience_s)
        self._service = Service(
            cleaning.settings,
            connection,
            lambda: self._queues,
            self._metrics,
            notify=cleaning.notify,
            listen=cleaning.listen,
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
            self._environment.note(self._first_line())
            self._service.begin(counts_items=True)
            for number in rounds:
                goes_deep = self._deep or beats.monotonic() >= deep_at_s
                try:
                    self._clean(beats, deep=goes_deep, warns=number == 1)
                except ServerError as error:
                    rounds.failed(error)
                    continue
                supervision.ready(self._status())
                # A deep clean that failed stays due.
                if goes_deep:
                    deep_at_s = beats.monotonic() + jittered(deep_every_s)
        return ExitStatus.OK

    def _clean(self, beats: "Beats", *, deep: bool, warns: bool) -> None:
        """Clean all queues once."""
        opened = self._opened
        self._queues[:] = opened.find().queues
        for queue in self._queues:
            # On a cluster, each queue has a connection of its own.
            queue.clock = queue.connection.progress = beats
            self._cleaning.clean(
                *(opened, queue, self._time, self._actions),
                deep=deep,
                warns=warns,
                history=self._service.history,
            )
            # Raises if nobody reads the results any more.
            self._environment.stdout.flush()
        self._rounds["deep" if deep else "light"] += 1

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

    def _first_line(self) -> str:
        depth = "deep" if self._deep else "light"
        more = f" and a deep one every {self._deep_every}" if self._deep_every else ""
        where = self._cleaning.settings.server_label
        return (
            f"rwq: running a {depth} clean of {self._opened.names} every {self._every}{more} "
            f"on {where}"
        )

    def _status(self) -> str:
        counts = dict.fromkeys(Repair, 0)
        for (_, action), number in self._actions.items():
            counts[action] += number
        what = ", ".join(f"{action} {number:,}" for action, number in counts.items() if number)
        total = self._rounds.total()
        rounds = f"{total:,} round{'' if total == 1 else 's'}"
        return f"{self._opened.label}: {what or 'nothing to clean'} in {rounds}"
