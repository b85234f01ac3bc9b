"""What `rwq work` shows: its plan, its events and notes, and what supervisors ask for."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import BinaryIO

from rwq_cli.cli.connect import summary_end
from rwq_cli.cli.settings import LOCAL, Settings
from rwq_cli.commands.serving import Service
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.errors import RwqError
from rwq_cli.core.items.lease import lease_from
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.work.job import Job, RetryPolicy
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.tally import DRY_RUN, Tally
from rwq_cli.views.working import (
    EVENTS,
    NO_PLAN,
    PLAN_FIELDS,
    LiveNotes,
    Planned,
    joblog_lines,
    plan_sections,
    work_metrics,
)
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import JobLog, Notes, clean, count
from rwq_cli.work.plan import Plan
from rwq_cli.work.programs import BadArguments
from rwq_cli.work.running import Outputs
from rwq_cli.work.worker import Worker

# How often a worker sees to it that its embedded server runs.
_REVIVE_S = 2.0
# These formats write events or a summary to stdout, so commands must not.
_OWN_STDOUT = (OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)


def show_plan(
    settings: Settings,
    queues: Sequence[WorkQueue],
    invocations: Invocations,
    policy: RetryPolicy,
    count: int,
) -> ExitStatus:
    plan = NO_PLAN
    if items := list(lease_from(queues, count, dry_run=True)):
        handles, holder = {queue.name: queue for queue in queues}, queues[0].holder
        jobs = []
        for item in items:
            queue, data, returns = handles[item.queue], item.data or b"", item.returns or 0
            is_last = policy.is_last(returns + 1)
            jobs.append(Job(queue, item.item_id, data, holder, returns, is_last, deadline_s=inf))
        try:
            plan = Planned(items, invocations.of(jobs, dry_run=True), None)
        except BadArguments as error:
            plan = Planned(items, None, str(error))
        settings.environment.note(f"{DRY_RUN}this would be run next")
    elif settings.output.is_table and not settings.quiet:
        names = ", ".join(escaped(queue.name) for queue in queues)
        settings.out.text(f"No item to work on in {names}.\n")
    # JSON always has a record.
    plans = [plan] if items or settings.output is OutputFormat.JSON else []
    settings.out.describe(plans, PLAN_FIELDS, plan_sections)
    return ExitStatus.OK


def notes_and_outputs(
    settings: Settings, queues: Sequence[WorkQueue], *, result: bool
) -> tuple[Notes, Outputs]:
    environment = settings.environment
    if environment.stdout_is_closed:
        # What commands print goes nowhere then.
        environment.stdout = open(os.devnull, "wb")  # noqa: SIM115
    has_own_stdout = settings.output in _OWN_STDOUT
    is_live = (
        environment.stderr_is_terminal
        and not (settings.quiet or environment.stdout_is_pipe)
        and not (has_own_stdout and environment.stdout_is_terminal)
    )
    names_queues = len(queues) > 1
    notes, write = Notes(environment, names_queues=names_queues), _write
    if is_live:
        notes = live = LiveNotes(
            environment, names_queues=names_queues, colour=settings.wants_colour(is_terminal=True)
        )
        write = live.pass_on
    to_stderr = partial(write, environment.stderr)
    if result:
        return notes, Outputs(None, to_stderr)
    to_stdout = to_stderr if has_own_stdout else partial(write, environment.stdout)
    return notes, Outputs(to_stdout, to_stderr)


def _write(stream: BinaryIO, data: bytes) -> None:
    """Pass on what a command printed; the command keeps running if nobody reads it."""
    with suppress(OSError):
        stream.write(data)
        stream.flush()


def run_plan(
    settings: Settings,
    queues: Sequence[WorkQueue],
    plan: Plan,
    invocations: Invocations,
    *,
    joblog: str | None,
    notify: bool,
    listen: tuple[str, int] | None,
) -> ExitStatus:
    """Run a worker to its end."""
    # The live line replaces the display of progress.
    settings.end_progress()
    for queue in queues:
        queue.connection.progress = ProgressListener()
    notes, outputs = notes_and_outputs(settings, queues, result=plan.options.keeps_result)
    log = None if joblog is None else JobLog(joblog, settings.environment.error)
    service = Service(
        settings,
        queues[0].connection.root,
        lambda: queues,
        lambda: work_metrics(notes.progress),
        notify=notify,
        listen=listen,
    )
    worker = Worker(
        partial(queues[0].work, more_queues=queues[1:], batch=plan.options.batch, **plan.work),
        invocations,
        outputs,
        plan.limits,
        notes,
        service.supervision,
        _chores(settings, queues, plan, notes, service),
        # Neither the job log nor a summary shows them.
        yields_starts=settings.output in (OutputFormat.JSONL, OutputFormat.CSV),
    )
    counts_items = listen is not None or plan.options.clean_s is not None
    _run(settings, queues, worker, service, log, counts_items=counts_items)
    is_incomplete = log is not None and log.is_incomplete
    # Partial even if all items were given up.
    return ExitStatus.PARTIAL if worker.has_failed or is_incomplete else ExitStatus.OK


def _chores(
    settings: Settings,
    queues: Sequence[WorkQueue],
    plan: Plan,
    notes: Notes,
    service: Service,
) -> list[tuple[float, Callable[[], object]]]:
    chores: list[tuple[float, Callable[[], object]]] = []
    if plan.options.clean_s is not None:
        chores.append((plan.options.clean_s, partial(clean, queues, notes, service.history)))
    if notes.tick_s is not None:
        # As often as the live line, which shows the count, is drawn.
        chores.append((notes.tick_s, partial(count, queues, notes)))
    if settings.server.url.startswith(LOCAL):
        # It is started when it is needed, also if it has been killed since.
        server = settings.local_server(settings.server.url)
        chores.append((_REVIVE_S, server.ensure_running))
    return chores


def _run(
    settings: Settings,
    queues: Sequence[WorkQueue],
    worker: Worker,
    service: Service,
    log: JobLog | None,
    *,
    counts_items: bool,
) -> None:
    names = ", ".join(escaped(queue.name) for queue in queues)
    tally = Tally(
        EVENTS,
        None,
        dry_run=False,
        facts={"queues": [escaped(queue.name) for queue in queues]},
        where=partial(summary_end, settings, names),
    )
    out = settings.out.begin_tally(tally)
    environment = settings.environment
    failure: RwqError | None = None
    with out:
        try:
            with service.supervision:
                service.begin(counts_items=counts_items)
                for events in worker.events():
                    if log is not None:
                        log.write(joblog_lines(events))
                    out.report_batch(events)
                    if settings.output in _OWN_STDOUT:
                        # Otherwise stdout is the commands', and its reader may stall.
                        environment.flush()
        except RwqError as error:
            failure = error
        finally:
            environment.note_above = None
            if log is not None:
                log.close()
    if failure is not None:
        if tally.has_work:
            environment.note(tally.summary())
        # Outside the block: what was done does not make this error a partial success.
        raise failure
    out.finish()
