"""`rwq work`: run a command for each item."""

import os
from typing import Annotated

import typer

from rwq_cli.cli.command import command
from rwq_cli.cli.connect import open_queues, server_variables
from rwq_cli.cli.options import (
    DEFAULT_LEASE,
    Duration,
    FairOption,
    LeaseForOption,
    ListenOption,
    NotifyOption,
    RateOption,
    option,
    result_duration,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.working import run_plan, show_plan
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.work.control import RECONNECT_S
from rwq_cli.core.work.job import BACKOFF_MAX_S, BACKOFF_S, RETRIES, OnFail
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.working import EVENT_FIELDS, PLAN_FIELDS
from rwq_cli.work.invocations import Input
from rwq_cli.work.plan import Options, make_plan
from rwq_cli.work.programs import allow_open_files
from rwq_cli.work.running import RESULT_BYTES_MAX

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
    fair: FairOption = False,
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
        OnFail, option("--on-fail HOW", "Then bury, release, reject or stop.")
    ] = OnFail.BURY,
    input_: Annotated[
        Input | None,
        option("--input HOW", "Data by stdin, as a line, by file, arg or none."),
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
    rate: RateOption = None,
    clean_s: Annotated[
        Duration | None, option("--clean DUR", "Do a light clean this often.")
    ] = None,
    joblog: Annotated[str | None, option("--joblog FILE", "Append a TSV line per item.")] = None,
    notify: NotifyOption = False,
    listen: ListenOption = None,
    dry_run: Annotated[bool, option("--dry-run", "Show the next item and its command.")] = False,
) -> ExitStatus:
    """Run a command for each item: exit 0 done, 75 put back, 100 bury, else retry.

    rwq work -q jobs -- ./resize
    rwq work -q high -q low -j 4 --max-time 10m --joblog jobs.tsv -- ./resize
    rwq work -q jobs --input arg --drain -- curl -fsS '{data}'
    rwq work -q jobs --input file --result -- identify '{file}'
    rwq work -q jobs --batch 100 -- ./resize
    rwq work -q jobs --task-dir ./tasks
    rwq work -q jobs --dry-run -- ./resize
    """
    options = Options(
        words=[os.fsencode(word) for word in command or ()],
        task_dir=task_dir,
        input=input_,
        batch=batch,
        keeps_result=result,
        jobs=jobs,
        lease_s=lease_s,
        is_fair=fair,
        max_time_s=max_time_s,
        kill_after_s=kill_after_s,
        grace_s=grace_s,
        retries=retries,
        backoff_s=backoff_s,
        backoff_max_s=backoff_max_s,
        on_fail=on_fail,
        result_ttl_s=result_ttl_s,
        drains=drain,
        max_items=max_items,
        max_failures=max_failures,
        idle_s=idle_s,
        reconnect_s=reconnect_s,
        rate=rate,
        clean_s=clean_s,
    )
    plan = make_plan(options, settings.environment.variables.get("PATH", os.defpath))
    allow_open_files(plan.work["concurrency"])
    queues = open_queues(settings)
    invocations = plan.invocations(
        {
            **{os.fsencode(k): os.fsencode(v) for k, v in settings.environment.variables.items()},
            **server_variables(settings),
            **dict.fromkeys(_SYSTEMD if notify else ()),
        },
        settings.holder_of(""),
        settings.environment.variables.get("TMPDIR") or "/tmp",
    )
    if dry_run:
        return show_plan(settings, queues, invocations, plan.policy, batch or 1)
    return run_plan(
        settings, queues, plan, invocations, joblog=joblog, notify=notify, listen=listen
    )
