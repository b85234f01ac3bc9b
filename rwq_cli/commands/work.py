"""`rwq work`: run a command for each item."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Annotated

import typer

from rwq_cli.cli.command import command
from rwq_cli.cli.connect import open_queues, server_variables
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
from rwq_cli.commands.working import refusal_of, run_worker, scraped, show_plan, terminal
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.work.control import RECONNECT_S
from rwq_cli.core.work.job import BACKOFF_MAX_S, BACKOFF_S, RETRIES, OnFail, RetryPolicy
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.options import OutputFormat
from rwq_cli.service.supervision import Supervision
from rwq_cli.views.working import EVENT_FIELDS, PLAN_FIELDS
from rwq_cli.work.invocations import Input, Invocations, check_command
from rwq_cli.work.notes import JobLog, clean, count
from rwq_cli.work.programs import allow_open_files, find_program
from rwq_cli.work.running import RESULT_BYTES_MAX, Limits
from rwq_cli.work.worker import STOP_S, Worker

# A command must not notify systemd in the name of its worker.
_SYSTEMD = (b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID")
KILL_AFTER = Duration(10)
BACKOFF = Duration(BACKOFF_S)
BACKOFF_MAX = Duration(BACKOFF_MAX_S)
RECONNECT = Duration(RECONNECT_S)
RESULT_TTL = Duration(RESULT_TTL_S)


@command(
    record=lambda options: PLAN_FIELDS if options.get("dry_run") else EVENT_FIELDS,
    ok="ended as asked",
    usage="usage error, or the command cannot be run",
    partial="items given up, or output lost",
    interrupted="a second Ctrl-C",
    options_first=True,
    always_table=True,
)
def work(
    settings: Settings,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND [ARG...]", help="The command and its arguments.", hidden=True
        ),
    ] = None,
    jobs: Annotated[int, option("-j, --jobs N", "Run N at once; 0: one per core.", min=0)] = 1,
    lease_s: LeaseForOption = DEFAULT_LEASE,
    fair: Annotated[bool, option("--fair", "Take from several queues in random order.")] = False,
    max_time_s: Annotated[
        Duration | None, option("--max-time DUR", "End a command that runs longer, as a failure.")
    ] = None,
    kill_after_s: Annotated[
        Duration, option("--kill-after DUR", "Send SIGKILL this long after SIGTERM.")
    ] = KILL_AFTER,
    retries: Annotated[
        int, option("--retries N", "Retry a failed item up to N times.", min=0)
    ] = RETRIES,
    backoff_s: Annotated[Duration, option("--backoff DUR", "The first delay; doubles.")] = BACKOFF,
    backoff_max_s: Annotated[
        Duration, option("--backoff-max DUR", "The longest delay.")
    ] = BACKOFF_MAX,
    on_fail: Annotated[
        OnFail, option("--on-fail HOW", "Finally bury, release, reject or stop.")
    ] = OnFail.BURY,
    input_: Annotated[
        Input | None, option("--input HOW", "Data by stdin (default), file, arg ({data}) or none.")
    ] = None,
    batch: Annotated[
        int | None, option("--batch N", "Up to N items per command, as JSON lines on stdin.", min=1)
    ] = None,
    task_dir: Annotated[
        str | None, option("--task-dir DIR", 'Run DIR/NAME for data ["NAME", [ARGS]].')
    ] = None,
    result: Annotated[
        bool,
        option("--result", f"Keep its stdout as the result; at most {RESULT_BYTES_MAX >> 20} MiB."),
    ] = False,
    result_ttl_s: Annotated[
        Duration, option("--result-ttl DUR", "Keep the result for this long.", result_duration)
    ] = RESULT_TTL,
    drain: Annotated[bool, option("--drain", "End when none is left to lease or retry.")] = False,
    max_items: Annotated[int | None, option("--max N", "End after N items.", min=1)] = None,
    max_failures: Annotated[
        int | None, option("--max-failures N", "End after N failures.", min=1)
    ] = None,
    idle_s: Annotated[Duration | None, option("--idle DUR", "End when idle for this long.")] = None,
    grace_s: Annotated[
        Duration | None,
        option("--grace DUR", "When stopped, end commands after this.  [default: never]"),
    ] = None,
    reconnect_s: Annotated[
        Duration, option("--reconnect DUR", "Keep trying to reconnect for this long.")
    ] = RECONNECT,
    clean_s: Annotated[
        Duration | None, option("--clean DUR", "Do a light clean this often.")
    ] = None,
    joblog: Annotated[str | None, option("--joblog FILE", "Append a TSV line per item.")] = None,
    notify: NotifyOption = False,
    listen: ListenOption = None,
    dry_run: Annotated[bool, option("--dry-run", "Show the next item and its command.")] = False,
) -> ExitStatus:
    """Run a command for each item. Exit code 0 completes the item, 75 releases it, 100 buries it,
    126 and 127 end the worker, any other retries it.

    rwq work -q jobs -- ./resize
    rwq work -q high -q low -j 4 --max-time 10m --joblog jobs.tsv -- ./resize
    rwq work -q jobs --input arg --drain -- curl -fsS '{data}'
    rwq work -q jobs --input file --result -- identify '{file}'
    rwq work -q jobs --batch 100 -- ./resize
    rwq work -q jobs --task-dir ./tasks
    rwq work -q jobs --dry-run -- ./resize
    """
    words = [os.fsencode(word) for word in command or ()]
    if task_dir is None:
        check_command(words, input_, is_batch=batch is not None, keeps_result=result)
    else:
        _check_tasks(task_dir, words, input_, batch=batch)
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
    invocations = Invocations(
        words=words,
        program=program,
        task_dir=None if task_dir is None else os.fsencode(os.path.abspath(task_dir)),
        input=input_,
        is_batch=batch is not None,
        inherited={
            **{os.fsencode(k): os.fsencode(v) for k, v in settings.environment.variables.items()},
            **server_variables(settings),
            **dict.fromkeys(_SYSTEMD if notify else ()),
        },
        holder_prefix=settings.holder_of(""),
        lease_s=lease_s,
        file_directory=settings.environment.variables.get("TMPDIR") or "/tmp",
    )
    if dry_run:
        return show_plan(settings, queues, invocations, policy, batch or 1)
    # The live line replaces the display of progress.
    settings.end_progress()
    for queue in queues:
        queue.connection.progress = ProgressListener()
    notes, outputs = terminal(settings, queues, result=result)
    log = None if joblog is None else JobLog(joblog, settings.environment.error)
    chores: list[tuple[float, Callable[[], object]]] = []
    if clean_s is not None:
        chores.append((clean_s, partial(clean, queues, notes)))
    if notes.tick_s is not None:
        # As often as the live line, which shows the count, is drawn.
        chores.append((notes.tick_s, partial(count, queues, notes)))
    from rwq_cli.core.inspect.rates import ItemTotals

    totals = ItemTotals(queues[0].connection.root)
    supervision = Supervision(
        notifies=notify,
        address=listen,
        variables=settings.environment.variables,
        metrics=lambda: scraped(queues, notes.progress, totals),
        refusal=lambda: refusal_of(queues[0]),
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
            stop_s=STOP_S,
        ),
        invocations,
        outputs,
        Limits(max_time_s, kill_after_s, grace_s),
        notes,
        supervision,
        chores,
        # Neither the job log nor a summary shows them.
        yields_starts=settings.output in (OutputFormat.JSONL, OutputFormat.CSV),
    )
    run_worker(settings, queues, worker, supervision, log, totals)
    is_incomplete = log is not None and log.is_incomplete
    # Partial even if all items were given up.
    return ExitStatus.PARTIAL if worker.has_failed or is_incomplete else ExitStatus.OK


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_tasks(
    task_dir: str, words: Sequence[bytes], input_: Input | None, *, batch: int | None
) -> None:
    if words:
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
