"""`rwq work`: run a command for each item."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import BinaryIO

from rwq_cli.cli.connect import describe_target, open_queues
from rwq_cli.cli.settings import LOCAL
from rwq_cli.commands import ExitStatus, Settings, command
from rwq_cli.commands.serving import Service
from rwq_cli.commands.working import WorkerOptions
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.errors import RwqError
from rwq_cli.core.items.lease import lease_from
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.work.job import Job
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.tally import DRY_RUN, Tally
from rwq_cli.views.working import (
    EVENT_FIELDS,
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
from rwq_cli.work.programs import BadArguments, allow_open_files
from rwq_cli.work.running import Outputs
from rwq_cli.work.worker import Worker

# How often a worker sees to it that its embedded server runs.
_REVIVE_S = 2.0
# These formats write events or a summary to stdout, so commands must not.
_OWN_STDOUT = (OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)


@command(
    record=lambda options: PLAN_FIELDS if options.get("dry_run") else EVENT_FIELDS,
    ok="ended as asked",
    usage="usage error, or the command cannot be run",
    partial="items given up, or output lost",
    interrupted="a second Ctrl-C",
    options_first=True,
    always_table=True,
)
def work(settings: Settings, options: WorkerOptions) -> ExitStatus:
    """Run a command for each item: exit 0 done, 75 put back, 100 bury, else retry.

    rwq work -q jobs -- ./resize
    rwq work -q high -q low -j 4 --max-time 10m --joblog jobs.tsv -- ./resize
    rwq work -q jobs --input arg --drain -- curl -fsS '{data}'
    rwq work -q jobs --input file --result -- identify '{file}'
    rwq work -q jobs --batch 100 -- ./resize
    rwq work -q jobs --task-dir ./tasks
    rwq work -q jobs --dry-run -- ./resize
    """
    options.check()
    program = options.find_program()
    allow_open_files(options.concurrency)
    queues = open_queues(settings)
    invocations = options.make_invocations(program)
    if options.dry_run:
        return _show_next(options, queues, invocations)
    return _run(options, queues, invocations)


def _show_next(
    options: WorkerOptions, queues: Sequence[WorkQueue], invocations: Invocations
) -> ExitStatus:
    """Show the next items and the command that would be run for them."""
    settings, plan = options.settings, NO_PLAN
    if items := list(lease_from(queues, options.batch or 1, dry_run=True)):
        handles, holder = {queue.name: queue for queue in queues}, queues[0].holder
        jobs = []
        for item in items:
            queue, data, returns = handles[item.queue], item.data or b"", item.returns or 0
            is_last = options.policy.is_last(returns + 1)
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


def _run(
    options: WorkerOptions, queues: Sequence[WorkQueue], invocations: Invocations
) -> ExitStatus:
    """Run a worker to its end."""
    settings = options.settings
    # The live line replaces the display of progress.
    settings.end_progress()
    for queue in queues:
        queue.connection.progress = ProgressListener()
    notes, outputs = _notes_and_outputs(options, names_queues=len(queues) > 1)
    log = None if options.joblog is None else JobLog(options.joblog, settings.environment.error)
    service = Service(
        settings,
        queues[0].connection.root,
        lambda: queues,
        lambda: work_metrics(notes.progress),
        notify=options.notify,
        listen=options.listen,
    )
    loop_options = options.of_loop()
    worker = Worker(
        partial(queues[0].work, more_queues=queues[1:], batch=options.batch, **loop_options),
        invocations,
        outputs,
        options.limits,
        notes,
        service.supervision,
        _chores(options, queues, notes, service),
        # Neither the job log nor a summary shows them.
        yields_starts=settings.output in (OutputFormat.JSONL, OutputFormat.CSV),
    )
    _report(options, queues, worker, service, log)
    is_incomplete = log is not None and log.is_incomplete
    # Partial even if all items were given up.
    return ExitStatus.PARTIAL if worker.has_failed or is_incomplete else ExitStatus.OK


def _notes_and_outputs(options: WorkerOptions, *, names_queues: bool) -> tuple[Notes, Outputs]:
    settings, environment = options.settings, options.settings.environment
    if environment.stdout_is_closed:
        # What commands print goes nowhere then.
        environment.stdout = open(os.devnull, "wb")  # noqa: SIM115
    has_own_stdout = settings.output in _OWN_STDOUT
    is_live = (
        environment.stderr_is_terminal
        and not (settings.quiet or environment.stdout_is_pipe)
        and not (has_own_stdout and environment.stdout_is_terminal)
    )
    notes, write = Notes(environment, names_queues=names_queues), _write
    if is_live:
        notes = live = LiveNotes(
            environment, names_queues=names_queues, colour=settings.wants_colour(is_terminal=True)
        )
        write = live.pass_on
    to_stderr = partial(write, environment.stderr)
    if options.keeps_result:
        return notes, Outputs(None, to_stderr)
    to_stdout = to_stderr if has_own_stdout else partial(write, environment.stdout)
    return notes, Outputs(to_stdout, to_stderr)


def _write(stream: BinaryIO, data: bytes) -> None:
    """Pass on what a command printed; the command keeps running if nobody reads it."""
    with suppress(OSError):
        stream.write(data)
        stream.flush()


def _chores(
    options: WorkerOptions, queues: Sequence[WorkQueue], notes: Notes, service: Service
) -> list[tuple[float, Callable[[], object]]]:
    settings = options.settings
    chores: list[tuple[float, Callable[[], object]]] = []
    if options.clean_s is not None:
        chores.append((options.clean_s, partial(clean, queues, notes, service.history)))
    if notes.tick_s is not None:
        # As often as the live line, which shows the count, is drawn.
        chores.append((notes.tick_s, partial(count, queues, notes)))
    if settings.server.url.startswith(LOCAL):
        # It is started when it is needed, also if it has been killed since.
        server = settings.local_server(settings.server.url)
        chores.append((_REVIVE_S, server.ensure_running))
    return chores


def _report(
    options: WorkerOptions,
    queues: Sequence[WorkQueue],
    worker: Worker,
    service: Service,
    log: JobLog | None,
) -> None:
    """Write what the worker does, until it ends."""
    settings, environment = options.settings, options.settings.environment
    names = [escaped(queue.name) for queue in queues]
    tally = Tally(
        EVENTS,
        None,
        dry_run=False,
        facts={"queues": names},
        where=partial(describe_target, settings, ", ".join(names)),
    )
    failure: RwqError | None = None
    with settings.out.begin_tally(tally) as out:
        try:
            with service.supervision:
                service.begin(counts_items=(options.listen, options.clean_s) != (None, None))
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
