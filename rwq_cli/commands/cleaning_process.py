"""`rwq clean --every`: cleans until it is stopped."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.open_queues import OpenQueues, QueueFinder, warn_if_missing
from rwq_cli.cli.options import Address, Duration
from rwq_cli.cli.queue_scraper import QueueScraper
from rwq_cli.cli.settings import Settings
from rwq_cli.core.clock import SystemClock
from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.actions import CleanBatch
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.outcomes import Outcomes, Parts
from rwq_cli.service.rounds import Rounds, Timer
from rwq_cli.service.supervision import BeatingClock, BeatingProgress, Supervision
from rwq_cli.views.cleaning import CLEAN
from rwq_cli.views.cleaning_process import CleanTally, clean_metrics, clean_status

# How much longer than any call the process may be silent before it counts as stuck.
_MARGIN_S = 30.0


class Schedule(NamedTuple):
    """When `rwq clean` cleans, deep or light and then deep now and then, and who watches it."""

    every: Duration
    is_deep: bool
    deep_every: Duration | None
    notifies: bool
    listen: Address | None


class CleaningProcess:
    """Cleans queues in rounds; see `Schedule`.

    Raises:
        InvalidArgument: No queue is named, or the output format needs an end.
    """

    def __init__(
        self,
        settings: Settings,
        schedule: Schedule,
        clean: Callable[[WorkQueue, bool], Iterator[CleanBatch]],
        *,
        all_queues: bool,
        dry_run: bool,
    ) -> None:
        settings.check_endless("--every")
        self._settings = settings
        self._schedule = schedule
        self._clean = clean
        self._dry_run = dry_run
        self._parts = Parts(settings.output_options)
        self._finder = QueueFinder(settings, all_queues=all_queues, changes=True)
        self._queues: list[WorkQueue] = []
        self._tally = CleanTally()
        connection = self._finder.connection
        scraper = QueueScraper(connection)
        self._supervision = Supervision(
            notifies=schedule.notifies,
            address=schedule.listen,
            variables=settings.environment.variables,
            metrics=lambda: [*scraper.read(self._queues), *clean_metrics(self._tally)],
            silence_s=_MARGIN_S
            + settings.connect_timeout_s
            + settings.reply_timeout_s
            + settings.patience_s,
        )
        self._clock = BeatingClock(SystemClock(), self._supervision.beat)
        self._progress = BeatingProgress(connection.progress, self._supervision.beat)
        connection.progress = self._progress
        self._rounds = Rounds(
            schedule.every,
            self._clock,
            supervision=self._supervision,
            note=lambda line: settings.environment.error(f"rwq: {line}"),
        )

    def run(self) -> ExitStatus:
        """Clean until SIGTERM or Ctrl-C."""
        deep_every = self._schedule.deep_every
        timer = Timer(deep_every, self._clock) if deep_every else None
        is_deep = False
        with ending_on_terminate(), self._supervision:
            self._note_start()
            for number in self._rounds:
                # A deep clean that failed is due again.
                is_deep = is_deep or self._schedule.is_deep or bool(timer and timer.is_due())
                if self._clean_all(is_deep=is_deep, is_first=number == 1):
                    is_deep = False
        return ExitStatus.OK

    def _note_start(self) -> None:
        note = self._settings.environment.note
        every, deep_every = self._schedule.every, self._schedule.deep_every
        depth = "deep" if self._schedule.is_deep else "light"
        more = f" and a deep one every {deep_every}" if deep_every else ""
        note(
            f"rwq: running a {depth} clean of {self._finder.label} every {every}{more} on "
            f"{self._settings.server_label}"
        )
        if self._supervision.url is not None:
            note(f"rwq: listening on {self._supervision.url}")

    def _clean_all(self, *, is_deep: bool, is_first: bool) -> bool:
        """Clean each queue once; return True if no server was lost meanwhile."""
        try:
            opened = self._finder.find()
            self._queues = opened.queues
            for queue in opened.queues:
                # On a cluster, each queue has a connection of its own.
                queue.clock, queue.connection.progress = self._clock, self._progress
                self._clean_one(opened, queue, is_deep=is_deep, is_first=is_first)
        except ServerError as error:
            self._rounds.failed(error)
            return False
        self._tally.rounds["deep" if is_deep else "light"] += 1
        self._supervision.ready(clean_status(self._tally, opened.label))
        return True

    def _clean_one(
        self, opened: OpenQueues, queue: WorkQueue, *, is_deep: bool, is_first: bool
    ) -> None:
        settings = self._settings

        def clean(queue: WorkQueue) -> Iterator[CleanBatch]:
            batches = self._clean(queue, is_deep)
            return warn_if_missing(settings, queue, batches) if is_first else batches

        out = Outcomes(
            settings.output_options,
            CLEAN,
            queue.name,
            dry_run=self._dry_run,
            where=self._when,
            parts=self._parts,
            name="" if opened.is_one else escaped(queue.name),
        )
        with out:
            try:
                for batch in opened.reader(settings, clean, queue):
                    out.rows(batch)
                    for repair, number in batch.counts().items():
                        self._tally.actions[queue.name, repair] += number
            except ServerError:
                out.note_unfinished()
                raise
        out.finish()
        # Raises if nobody reads the results any more.
        settings.environment.stdout.flush()

    def _when(self) -> str:
        # Elsewhere, a logger such as journald adds the time.
        is_terminal = self._settings.environment.stderr_is_terminal
        return time.strftime(" at %H:%M:%S") if is_terminal else ""
