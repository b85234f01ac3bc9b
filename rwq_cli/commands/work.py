"""`rwq work`: run a command for each item."""

import os
from collections.abc import Iterator
from inspect import Parameter
from typing import Annotated, get_type_hints

import typer

from rwq_cli.cli.command import command, keyword, with_options
from rwq_cli.cli.connect import open_queues, server_variables
from rwq_cli.cli.options import (
    FAIR,
    LEASE_FOR,
    RATE,
    Duration,
    ListenOption,
    NotifyOption,
    option,
    result_duration,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.working import run_plan, show_plan
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.working import EVENT_FIELDS, PLAN_FIELDS
from rwq_cli.work.plan import Options, make_plan
from rwq_cli.work.programs import allow_open_files
from rwq_cli.work.running import RESULT_BYTES_MAX

# A command must not notify systemd in the name of its worker.
_SYSTEMD = (b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID")
_RESULT = f"Keep its stdout as the result; at most {RESULT_BYTES_MAX >> 20} MiB."
# How each field of `Options` is given, in the order of the help.
_DECLARED = {
    "words": typer.Argument(
        metavar="COMMAND [ARG...]",
        help="The command and its arguments.",
        parser=os.fsencode,
        hidden=True,
    ),
    "jobs": option("-j, --jobs N", "Run N at once; 0: one per core.", min=0),
    "lease_s": LEASE_FOR,
    "is_fair": FAIR,
    "max_time_s": option("--max-time DUR", "End a command that runs longer, as a failure."),
    "kill_after_s": option("--kill-after DUR", "Send SIGKILL this long after SIGTERM."),
    "retries": option("--retries N", "Retry a failed item up to N times.", min=0),
    "backoff_s": option("--backoff DUR", "The first delay; doubles."),
    "backoff_max_s": option("--backoff-max DUR", "The longest delay."),
    "on_fail": option("--on-fail HOW", "Then bury, release, reject or stop."),
    "input": option("--input HOW", "Data by stdin, as a line, by file, arg or none."),
    "batch": option("--batch N", "Up to N items per command, as JSON lines on stdin.", min=1),
    "task_dir": option("--task-dir DIR", 'Run DIR/NAME for data ["NAME", [ARGS]].'),
    "keeps_result": option("--result", _RESULT),
    "result_ttl_s": option("--result-ttl DUR", "Keep the result for this long.", result_duration),
    "drains": option("--drain", "End when none is left to lease or retry."),
    "max_items": option("--max N", "End after N items.", min=1),
    "max_failures": option("--max-failures N", "End after N failures.", min=1),
    "idle_s": option("--idle DUR", "End when idle for this long."),
    "grace_s": option("--grace DUR", "When stopped, end commands after this.  [default: never]"),
    "reconnect_s": option("--reconnect DUR", "Keep trying to reconnect for this long."),
    "rate": RATE,
    "clean_s": option("--clean DUR", "Do a light clean this often."),
}


def _parameters() -> Iterator[Parameter]:
    kinds = get_type_hints(Options)
    for name, default in Options([])._asdict().items():
        default = Duration(default) if isinstance(default, float) else default
        yield keyword(name, Annotated[kinds[name], _DECLARED[name]], default=default)


@command(
    record=lambda options: PLAN_FIELDS if options.get("dry_run") else EVENT_FIELDS,
    ok="ended as asked",
    usage="usage error, or the command cannot be run",
    partial="items given up, or output lost",
    interrupted="a second Ctrl-C",
    options_first=True,
    always_table=True,
)
@with_options("options", lambda _settings, **values: Options(**values), [*_parameters()])
def work(
    settings: Settings,
    options: Options,
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
        return show_plan(settings, queues, invocations, plan.policy, options.batch or 1)
    return run_plan(
        settings, queues, plan, invocations, joblog=joblog, notify=notify, listen=listen
    )
