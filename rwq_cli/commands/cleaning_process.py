"""`rwq clean --every`: cleans until it is stopped."""

import time
from collections import Counter
from collections.abc import Iterator
from math import inf
from random import random

from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.open_queues import OpenQueues, warn_if_missing
from rwq_cli.cli.options import Duration
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.cleaning import CLEAN, Cleaning
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanBatch, Repair
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.exposition import Metric
from rwq_cli.output.outcomes import Outcomes, Parts
from rwq_cli.service.rounds import Rounds, jittered
from rwq_cli.service.supervision import Beats, Supervision
from rwq_cli.views.monitoring import queue_scraper

# How much longer than any call the process may be silent before it counts as stuck.
_MARGIN_S = 30.0
# What a round only prunes was no item.
_KIND = CLEAN._replace(news=CLEAN.news - {Repair.PRUNED.value})


class CleaningProcess:
    def __init__(
        self, settings: Settings, cleaning: Cleaning, deep_every: Duration | None, *, is_deep: bool
    ) -> None:
        settings.check_endless("--every")
        # A round that did something says so.
        settings.environment.interrupted = ""
        assert cleaning.every is not None
        self._settings, self._cleaning = settings, cleaning
        self._deep_every, self._is_deep = deep_every, is_deep
        self._parts = Parts(settings.output_options)
        self._opened = OpenQueues(settings, all_queues=cleaning.all_queues, changes=True)
        self._queues: list[WorkQueue] = []
        # How many rounds are complete, by their depth, and what was done, by queue.
        self._done: Counter[str] = Counter()
        self._actions: Counter[tuple[bytes, Repair]] = Counter()
        connection = self._opened.connection
        read_counts = queue_scraper(connection)
        self._supervision = Supervision(
            notifies=cleaning.notify,
            address=cleaning.listen,
            variables=settings.environment.variables,
            metrics=lambda: [*read_counts(self._queues), *self._metrics()],
            silence_s=_MARGIN_S
            + settings.connect_timeout_s
            + settings.reply_timeout_s
            + settings.patience_s,
        )
        self._beats = Beats(Clock(), connection.progress, self._supervision.beat)
        connection.progress = self._beats
        self._rounds = Rounds(
            cleaning.every,
            self._beats,
            supervision=self._supervision,
            note=lambda line: settings.environment.error(f"rwq: {line}"),
        )

    def run(self) -> ExitStatus:
        now_s, every_s = self._beats.monotonic, self._deep_every or inf
        # Processes that start together do not clean deeply together.
        deep_at_s = now_s() + every_s * random()
        with ending_on_terminate(), self._supervision:
            self._note_start()
            for number in self._rounds:
                is_deep = self._is_deep or now_s() >= deep_at_s
                try:
                    self._clean_all(is_deep=is_deep, is_first=number == 1)
                    # One that failed is due again.
                    deep_at_s = now_s() + jittered(every_s) if is_deep else deep_at_s
                except ServerError as error:
                    self._rounds.failed(error)
        return ExitStatus.OK

    def _note_start(self) -> None:
        note = self._settings.environment.note
        depth = "deep" if self._is_deep else "light"
        more = f" and a deep one every {self._deep_every}" if self._deep_every else ""
        note(
            f"rwq: running a {depth} clean of {self._opened.names} every {self._cleaning.every}"
            f"{more} on {self._settings.server_label}"
        )
        if self._supervision.url is not None:
            note(f"rwq: listening on {self._supervision.url}")

    def _clean_all(self, *, is_deep: bool, is_first: bool) -> None:
        self._queues = self._opened.find().queues
        for queue in self._queues:
            # On a cluster, each queue has a connection of its own.
            queue.clock = queue.connection.progress = self._beats
            self._clean_one(queue, is_deep=is_deep, is_first=is_first)
        self._done["deep" if is_deep else "light"] += 1
        self._supervision.ready(self._status(self._opened.label))

    def _clean_one(self, queue: WorkQueue, *, is_deep: bool, is_first: bool) -> None:
        settings = self._settings

        def clean(queue: WorkQueue) -> Iterator[CleanBatch]:
            batches = self._cleaning.batches(queue, is_deep=is_deep)
            return warn_if_missing(settings, queue, batches) if is_first else batches

        with Outcomes(
            settings.output_options,
            _KIND,
            queue.name,
            dry_run=self._cleaning.dry_run,
            where=self._when,
            parts=self._parts,
            name="" if self._opened.is_one else escaped(queue.name),
        ) as out:
            try:
                for batch in self._opened.reader(clean, queue):
                    out.rows(batch)
                    for repair, number in batch.counts().items():
                        self._actions[queue.name, repair] += number
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

    def _status(self, label: str) -> str:
        counts: Counter[Repair] = Counter()
        for (_, action), number in self._actions.items():
            counts[action] += number
        done = ", ".join(f"{word} {number:,}" for word, number in counts.items())
        rounds = self._done.total()
        what = done or "nothing to clean"
        return f"{label}: {what} in {rounds:,} round{'' if rounds == 1 else 's'}"

    def _metrics(self) -> list[Metric]:
        # The main loop goes on meanwhile.
        rounds = [({"depth": depth}, number) for depth, number in self._done.copy().items()]
        actions = [
            ({"queue": queue, "action": action.value}, number)
            for (queue, action), number in self._actions.copy().items()
        ]
        return [
            Metric("clean_rounds_total", "Complete rounds of this process.", rounds, "counter"),
            Metric("cleaned_items_total", "Repairs by this process.", actions, "counter"),
        ]
