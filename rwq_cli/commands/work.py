"""`rwq work`: run a command for each item."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming, open_queues, server_variables, summary_end_of
from rwq_cli.cli.options import (
    DEFAULT_LEASE,
    Duration,
    LeaseForOption,
    ListenOption,
    NotifyOption,
    option,
    result_duration,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.items.lease import lease_from
from rwq_cli.core.progress import ProgressListener
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.work.job import Job
from rwq_cli.core.work.policy import BACKOFF_MAX_S, BACKOFF_S, RETRIES, OnFail, RetryPolicy
from rwq_cli.core.work.stopping import RECONNECT_S
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.exposition import Metric
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import DRY_RUN, Outcomes
from rwq_cli.service.supervision import Supervision
from rwq_cli.views.working import (
    EVENT_FIELDS,
    EVENTS,
    NO_PLAN,
    PLAN_FIELDS,
    LiveNotes,
    Notes,
    Planned,
    joblog_lines,
    plan_sections,
    work_metrics,
)
from rwq_cli.work.commands import CommandLimits
from rwq_cli.work.events import Event
from rwq_cli.work.housekeeping import keep_house
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.joblog import JobLog
from rwq_cli.work.output import RESULT_BYTES_MAX, Outputs
from rwq_cli.work.programs import BadArguments, allow_open_files, find_program
from rwq_cli.work.template import CommandTemplate, Input
from rwq_cli.work.variables import Variables
from rwq_cli.work.worker import Worker, has_failed

if TYPE_CHECKING:
    from rwq_cli.cli.queue_scraper import QueueScraper

app = CommandModule()

# A command must not notify systemd in the name of its worker.
_SYSTEMD = (b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID")
KILL_AFTER = Duration("10s")
BACKOFF = Duration.of(BACKOFF_S)
BACKOFF_MAX = Duration.of(BACKOFF_MAX_S)
RECONNECT = Duration.of(RECONNECT_S)
RESULT_TTL = Duration.of(RESULT_TTL_S)
# How often what is left is counted for the live line: as often as that is drawn.
_COUNT_S = 0.5
# These formats write events or a summary to stdout, so that commands must not.
_OWN_STDOUT = (OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.IDS)


@app.command(
    record=lambda options: PLAN_FIELDS if options.get("dry_run") else EVENT_FIELDS,
    help="Run a command for each item. Its exit code 0 completes the item, 75 releases it, 100 "
    "buries it, 126 and 127 end the worker, any other retries it.",
    examples=(
        "rwq work -q jobs -- ./resize",
        "rwq work -q high -q low -j 4 --max-time 10m --joblog jobs.tsv -- ./resize",
        "rwq work -q jobs --input arg --drain -- curl -fsS '{data}'",
        "rwq work -q jobs --input file --result -- identify '{file}'",
        "rwq work -q jobs --batch 100 -- ./resize",
        "rwq work -q jobs --task-dir ./tasks",
        "rwq work -q jobs --dry-run -- ./resize",
    ),
    exits={
        ExitStatus.OK: "ended as asked",
        ExitStatus.USAGE: "wrong usage or command",
        ExitStatus.PARTIAL: "items given up, or output lost",
        ExitStatus.INTERRUPTED: "a second Ctrl-C",
    },
    options_first=True,
    always_table=True,
)
def work(
    settings: Settings,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="The command and its arguments.", hidden=True),
    ] = None,
    jobs: Annotated[
        int, option("-j, --jobs N", "Run so many at once; 0 is one per core.", min=0)
    ] = 1,
    lease_s: LeaseForOption = DEFAULT_LEASE,
    fair: Annotated[bool, option("--fair", "Take from several queues in random order.")] = False,
    max_time_s: Annotated[
        Duration | None,
        option(
            "--max-time DUR",
            "End a command that runs longer, as a failure.",
            Duration,
        ),
    ] = None,
    kill_after_s: Annotated[
        Duration, option("--kill-after DUR", "Send SIGKILL this long after SIGTERM.", Duration)
    ] = KILL_AFTER,
    retries: Annotated[
        int, option("--retries N", "Retry a failed item this many times.", min=0)
    ] = RETRIES,
    backoff_s: Annotated[
        Duration,
        option("--backoff DUR", "The first retry's delay; doubles.", Duration),
    ] = BACKOFF,
    backoff_max_s: Annotated[
        Duration, option("--backoff-max DUR", "The longest delay of a retry.", Duration)
    ] = BACKOFF_MAX,
    on_fail: Annotated[
        OnFail,
        option(
            "--on-fail HOW",
            "At last bury, release, reject or stop.",
        ),
    ] = OnFail.BURY,
    input_: Annotated[
        Input | None,
        option(
            "--input HOW",
            "Data by stdin (default), file, arg ({data}) or none.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        option("--batch N", "Up to N items a command, as JSON lines on stdin.", min=1),
    ] = None,
    task_dir: Annotated[
        str | None,
        option(
            "--task-dir DIR",
            'Run DIR/NAME for data ["NAME", [ARGS]].',
        ),
    ] = None,
    result: Annotated[
        bool,
        option(
            "--result",
            f"Keep its stdout as the result; at most {RESULT_BYTES_MAX >> 20} MiB.",
        ),
    ] = False,
    result_ttl_s: Annotated[
        Duration, option("--result-ttl DUR", "Keep the result for this long.", result_duration)
    ] = RESULT_TTL,
    drain: Annotated[
        bool,
        option(
            "--drain",
            "End when nothing is left to lease or to retry.",
        ),
    ] = False,
    max_items: Annotated[int | None, option("--max N", "End after N items.", min=1)] = None,
    max_failures: Annotated[
        int | None, option("--max-failures N", "End after N failures.", min=1)
    ] = None,
    idle_s: Annotated[
        Duration | None,
        option("--idle DUR", "End after so long without anything to do.", Duration),
    ] = None,
    grace_s: Annotated[
        Duration | None,
        option(
            "--grace DUR",
            "When stopped, end commands after this.  [default: never]",
            Duration,
        ),
    ] = None,
    reconnect_s: Annotated[
        Duration,
        option("--reconnect DUR", "How long to try to reconnect.", Duration),
    ] = RECONNECT,
    clean_s: Annotated[
        Duration | None,
        option("--clean DUR", "Do a light clean this often.", Duration),
    ] = None,
    joblog: Annotated[
        str | None, option("--joblog FILE", "Append a tab-separated line for each item.")
    ] = None,
    notify: NotifyOption = False,
    listen: ListenOption = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Show the next item and its command; lease nothing.")
    ] = False,
) -> ExitStatus:
    words = [os.fsencode(word) for word in command or ()]
    template = CommandTemplate(words, input_ or Input.STDIN)
    _check(template, input_, batch=batch, task_dir=task_dir, result=result)
    path = settings.environment.variables.get("PATH", os.defpath)
    program = find_program(words[0], path) if task_dir is None else None
    concurrency = jobs or _cores()
    allow_open_files(concurrency)
    if clean_s is not None and clean_s < 1:
        raise InvalidArgument("--clean must be at least 1s", "a clean looks twice, a second apart")
    if max_time_s is not None and max_time_s <= 0:
        raise InvalidArgument("--max-time must be longer than 0", "without it, there is no limit")
    if backoff_s > backoff_max_s:
        raise InvalidArgument(
            "--backoff is longer than --backoff-max", f"--backoff-max {backoff_s} allows it"
        )
    policy = RetryPolicy(retries, backoff_s, backoff_max_s, on_fail=on_fail)
    queues = open_queues(settings)
    names = [queue.name for queue in queues]
    variables = Variables(
        {os.fsencode(k): os.fsencode(v) for k, v in settings.environment.variables.items()},
        {**server_variables(settings), **dict.fromkeys(_SYSTEMD if notify else ())},
        settings.holder_of(""),
        lease_s,
    )
    invocations = Invocations(
        template,
        program=program,
        task_dir=None if task_dir is None else os.fsencode(os.path.abspath(task_dir)),
        variables=variables,
        file_directory=settings.environment.variables.get("TMPDIR") or "/tmp",
        is_batch=batch is not None,
    )
    if dry_run:
        return _show_plan(settings, names, list(_plans(queues, invocations, policy, batch or 1)))
    # The live line takes the place of progress.
    settings.end_progress()
    for queue in queues:
        queue.connection.progress = ProgressListener()
    notes, outputs = _terminal(
        settings, names_queues=len(queues) > 1, result=result, reconnect_s=reconnect_s
    )
    log = None if joblog is None else JobLog(joblog, settings.environment.error)
    count_s = _COUNT_S if notes.tick_s is not None else None

    @cache
    def scraper() -> "QueueScraper":
        from rwq_cli.cli.queue_scraper import QueueScraper

        return QueueScraper(queues[0].connection)

    def metrics() -> list[Metric]:
        return [*scraper().read(queues), *work_metrics(worker.progress)]

    supervision = Supervision(
        notifies=notify,
        address=listen,
        variables=settings.environment.variables,
        metrics=metrics,
    )
    worker = Worker(
        partial(
            queues[0].work,
            more_queues=queues[1:],
            fair=fair,
            concurrency=concurrency,
            batch=batch,
            for_s=lease_s,
            policy=policy,
            result_ttl_s=result_ttl_s,
            drain=drain,
            max_items=inf if max_items is None else max_items,
            max_failures=inf if max_failures is None else max_failures,
            idle_s=inf if idle_s is None else idle_s,
            reconnect_s=reconnect_s,
        ),
        invocations,
        outputs,
        CommandLimits(max_time_s, kill_after_s, grace_s),
        notes,
        supervision,
        partial(keep_house, queues, clean_s=clean_s, count_s=count_s)
        if clean_s is not None or count_s is not None
        else None,
        # Neither the job log nor a summary shows them.
        yields_starts=settings.output in (OutputFormat.JSONL, OutputFormat.CSV),
    )
    out = Outcomes(
        settings.output_options,
        EVENTS,
        None,
        dry_run=False,
        facts={"queues": [escaped(name) for name in names]},
        where=_summary_end(settings, queues),
    )
    with out:
        try:
            for events in _events(settings, supervision, worker, log):
                out.rows(events)
                settings.environment.flush()
        except RwqError:
            if out.has_work:
                settings.environment.note(out.summary())
            raise
    out.finish()
    is_incomplete = log is not None and log.is_incomplete
    # Also if all items were given up.
    return ExitStatus.PARTIAL if has_failed(worker) or is_incomplete else ExitStatus.OK


def _show_plan(settings: Settings, names: Sequence[bytes], plans: Sequence[Planned]) -> ExitStatus:
    """Show what would be run next."""
    output = settings.output
    if plans:
        settings.environment.note(f"{DRY_RUN}this would be run next")
    elif output is OutputFormat.JSON:
        plans = [NO_PLAN]
    elif output.is_table and not settings.quiet:
        settings.out.text(f"No item to work on in {', '.join(map(escaped, names))}.\n")
    settings.out.describe(plans, PLAN_FIELDS, plan_sections)
    return ExitStatus.OK


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check(
    template: CommandTemplate,
    input_: Input | None,
    *,
    batch: int | None,
    task_dir: str | None,
    result: bool,
) -> None:
    """Raise `InvalidArgument` for options that cannot be used together."""
    if task_dir is not None:
        if template.words:
            raise InvalidArgument(
                "--task-dir and a command cannot be used together", "the data names the command"
            )
        if batch is not None or input_ in (Input.FILE, Input.ARG):
            wrong = "--batch" if batch is not None else f"--input {input_}"
            raise InvalidArgument(
                f"--task-dir and {wrong} cannot be used together", "a task gets one item on stdin"
            )
        if not os.path.isdir(task_dir):
            raise InvalidArgument(f"--task-dir: no such directory: {task_dir}", "check the path")
        return
    if not template.words:
        raise InvalidArgument(
            "no command given", "it follows --, as in: rwq work -q jobs -- ./work"
        )
    if batch is not None and (result or input_ is not None):
        wrong = "--result" if result else "--input"
        raise InvalidArgument(
            f"--batch and {wrong} cannot be used together", "a batch has one stdin and one stdout"
        )
    template.check(input_is_given=input_ is not None, is_batch=batch is not None)


def _plans(
    queues: Sequence[WorkQueue], invocations: Invocations, policy: RetryPolicy, count: int
) -> Iterator[Planned]:
    """What would be run next."""
    items = list(lease_from(queues, count, dry_run=True))
    if not items:
        return
    handles = {queue.name: queue for queue in queues}
    jobs = []
    for item in items:
        returns = item.returns or 0
        jobs.append(
            Job(
                handles[item.queue],
                item.item_id,
                item.data or b"",
                queues[0].holder,
                returns,
                policy.is_last(returns + 1),
                deadline_s=inf,
            )
        )
    try:
        yield Planned(items, invocations.of(jobs, invocations.planned_file), None)
    except BadArguments as error:
        yield Planned(items, None, str(error))


def _terminal(
    settings: Settings, *, names_queues: bool, result: bool, reconnect_s: float
) -> tuple[Notes, Outputs]:
    """Where notes and the output of commands go."""
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
    if is_live:
        live = LiveNotes(
            environment,
            names_queues=names_queues,
            reconnect_s=reconnect_s,
            colour=settings.stderr_colour,
        )
        notes: Notes = live
        write = live.pass_on
    else:
        notes = Notes(environment, names_queues=names_queues, reconnect_s=reconnect_s)
        write = _write
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


def _summary_end(settings: Settings, queues: Sequence[WorkQueue]) -> Callable[[], str]:
    """Where the work was done, for the summary."""
    if len(queues) == 1:
        return naming(settings, queues[0]).summary_end
    names = ", ".join(escaped(queue.name) for queue in queues)
    return lambda: summary_end_of(settings, names)


def _events(
    settings: Settings,
    supervision: Supervision,
    worker: Worker,
    log: JobLog | None,
) -> Iterator[Sequence[Event]]:
    """Work; what happens is logged, and then reported."""
    environment = settings.environment
    try:
        with supervision:
            if supervision.url is not None:
                environment.note(f"rwq: listening on {supervision.url}")
            for events in worker.events():
                if log is not None:
                    log.write(joblog_lines(events))
                yield events
    finally:
        environment.note_above = None
        if log is not None:
            log.close()
