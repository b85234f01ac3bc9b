"""The options of `rwq work`, and what they ask for, without a server."""

import os
from collections.abc import Mapping
from math import inf
from typing import Annotated, NamedTuple

import typer

from rwq_cli.cli import options
from rwq_cli.cli.connect import make_server_variables
from rwq_cli.commands import Duration, InvalidArgument, Settings, option
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.work.control import RECONNECT_S, WorkOptions
from rwq_cli.core.work.job import BACKOFF_MAX_S, BACKOFF_S, RETRIES, OnFail, RetryPolicy
from rwq_cli.work.invocations import Input, Invocations, check_command
from rwq_cli.work.programs import find_program
from rwq_cli.work.running import RESULT_BYTES_MAX, Limits

# A command must not notify systemd in the name of its worker.
_SYSTEMD = (b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID")
# How long the server may take to acknowledge the last ends of a stopped worker: less than the 10 s
# after which containers are killed.
STOP_S = 8.0
_RESULT = f"Keep its stdout as the result; at most {RESULT_BYTES_MAX >> 20} MiB."


class WorkerOptions(NamedTuple):
    """What a worker runs, and how: the options of the command."""

    settings: Settings
    words: Annotated[
        list[bytes] | None,
        typer.Argument(
            metavar="COMMAND [ARG...]",
            help="The command and its arguments.",
            parser=os.fsencode,
            hidden=True,
        ),
    ] = None
    jobs: Annotated[int, option("-j, --jobs N", "Run N at once; 0: one per core.", min=0)] = 1
    lease_s: options.LeaseForOption = options.DEFAULT_LEASE
    is_fair: options.FairOption = False
    max_time_s: Annotated[
        Duration | None, option("--max-time DUR", "End a command that runs longer, as a failure.")
    ] = None
    kill_after_s: Annotated[
        Duration, option("--kill-after DUR", "Send SIGKILL this long after SIGTERM.")
    ] = Duration(10)
    retries: Annotated[int, option("--retries N", "Retry a failed item up to N times.", min=0)] = (
        RETRIES
    )
    backoff_s: Annotated[Duration, option("--backoff DUR", "The first delay; doubles.")] = Duration(
        BACKOFF_S
    )
    backoff_max_s: Annotated[Duration, option("--backoff-max DUR", "The longest delay.")] = (
        Duration(BACKOFF_MAX_S)
    )
    on_fail: Annotated[OnFail, option("--on-fail HOW", "Then bury, release, reject or stop.")] = (
        OnFail.BURY
    )
    input: Annotated[
        Input | None, option("--input HOW", "Data by stdin, as a line, by file, arg or none.")
    ] = None
    batch: Annotated[
        int | None,
        option("--batch N", "Up to N items per command, as JSON lines on stdin.", min=1),
    ] = None
    task_dir: Annotated[
        str | None, option("--task-dir DIR", 'Run DIR/NAME for data ["NAME", [ARGS]].')
    ] = None
    keeps_result: Annotated[bool, option("--result", _RESULT)] = False
    result_ttl_s: Annotated[
        Duration,
        option("--result-ttl DUR", "Keep the result for this long.", options.result_duration),
    ] = Duration(RESULT_TTL_S)
    drains: Annotated[bool, option("--drain", "End when none is left to lease or retry.")] = False
    max_items: Annotated[int | None, option("--max N", "End after N items.", min=1)] = None
    max_failures: Annotated[
        int | None, option("--max-failures N", "End after N failures.", min=1)
    ] = None
    idle_s: Annotated[Duration | None, option("--idle DUR", "End when idle for this long.")] = None
    grace_s: Annotated[
        Duration | None,
        option("--grace DUR", "When stopped, end commands after this.  [default: never]"),
    ] = None
    reconnect_s: Annotated[
        Duration, option("--reconnect DUR", "Keep trying to reconnect for this long.")
    ] = Duration(RECONNECT_S)
    rate: options.RateOption = None
    clean_s: Annotated[Duration | None, option("--clean DUR", "Do a light clean this often.")] = (
        None
    )
    joblog: Annotated[str | None, option("--joblog FILE", "Append a TSV line per item.")] = None
    notify: options.NotifyOption = False
    listen: options.ListenOption = None
    dry_run: Annotated[bool, option("--dry-run", "Show the next item and its command.")] = False

    def check(self) -> None:
        """Raise `InvalidArgument` if options exclude each other, or cannot work."""
        if self.task_dir is not None:
            self._check_tasks(self.task_dir)
        else:
            check_command(
                self.words or (),
                self.input,
                is_batch=self.batch is not None,
                keeps_result=self.keeps_result,
            )
        if self.clean_s is not None and self.clean_s < 1:
            raise InvalidArgument(
                "--clean must be at least 1s", "a clean looks twice, a second apart"
            )
        if self.max_time_s is not None and self.max_time_s <= 0:
            raise InvalidArgument(
                "--max-time must be longer than 0", "without it, there is no limit"
            )
        if self.backoff_s > self.backoff_max_s:
            raise InvalidArgument(
                "--backoff is longer than --backoff-max",
                f"--backoff-max {self.backoff_s} allows it",
            )

    def _check_tasks(self, task_dir: str) -> None:
        if self.words:
            raise InvalidArgument(
                "--task-dir and a command cannot be used together", "the data names the command"
            )
        if self.batch is not None or self.input not in (None, Input.STDIN, Input.NONE):
            wrong = "--batch" if self.batch is not None else f"--input {self.input}"
            raise InvalidArgument(
                f"--task-dir and {wrong} cannot be used together", "a task gets one item on stdin"
            )
        if not os.path.isdir(task_dir):
            raise InvalidArgument(f"--task-dir: no such directory: {task_dir}", "check the path")

    def find_program(self) -> bytes | None:
        """Find the command's program; None for tasks. Raises `CannotRun` if it cannot be run."""
        if not self.words:
            return None
        return find_program(self.words[0], self._variables.get("PATH", os.defpath))

    @property
    def _variables(self) -> Mapping[str, str]:
        return self.settings.environment.variables

    def make_invocations(self, program: bytes | None) -> Invocations:
        """Return what makes the commands, with the environment that they inherit."""
        settings, variables = self.settings, self._variables
        directory = self.task_dir and os.fsencode(os.path.abspath(self.task_dir))
        return Invocations(
            words=self.words or [],
            program=program,
            task_dir=directory or None,
            input=self.input,
            is_batch=self.batch is not None,
            inherited={
                **{os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
                **make_server_variables(settings),
                **dict.fromkeys(_SYSTEMD if self.notify else ()),
            },
            holder_prefix=settings.holder_of(""),
            lease_s=self.lease_s,
            file_directory=variables.get("TMPDIR") or "/tmp",
        )

    @property
    def concurrency(self) -> int:
        return self.jobs or _cores()

    @property
    def limits(self) -> Limits:
        return Limits(self.max_time_s, self.kill_after_s, self.grace_s)

    @property
    def policy(self) -> RetryPolicy:
        return RetryPolicy(self.retries, self.backoff_s, self.backoff_max_s, on_fail=self.on_fail)

    def of_loop(self) -> WorkOptions:
        """Return the options of the loop, where what is not limited is endless."""
        return WorkOptions(
            fair=self.is_fair,
            concurrency=self.concurrency,
            for_s=self.lease_s,
            policy=self.policy,
            result_ttl_s=self.result_ttl_s,
            drain=self.drains,
            max_items=inf if self.max_items is None else self.max_items,
            max_failures=inf if self.max_failures is None else self.max_failures,
            idle_s=inf if self.idle_s is None else self.idle_s,
            reconnect_s=self.reconnect_s,
            rate=self.rate or inf,
            stop_s=STOP_S,
        )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
