"""What a worker is to do: a plan, made from the options of `rwq work` without a server."""

import os
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from rwq_cli.core.clock import LEASE_S, RESULT_TTL_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.work.control import RECONNECT_S, WorkOptions
from rwq_cli.core.work.job import BACKOFF_MAX_S, BACKOFF_S, RETRIES, OnFail, RetryPolicy
from rwq_cli.work.invocations import Input, Invocations, check_command
from rwq_cli.work.programs import find_program
from rwq_cli.work.running import Limits

# How long the server may take to acknowledge the last ends of a stopped worker: less than the 10 s
# after which containers are killed.
STOP_S = 8.0


class Options(NamedTuple):
    """The options of `rwq work`; None where one is not given. Times are seconds."""

    words: list[bytes]
    jobs: int = 1
    lease_s: float = LEASE_S
    is_fair: bool = False
    max_time_s: float | None = None
    kill_after_s: float = 10.0
    retries: int = RETRIES
    backoff_s: float = BACKOFF_S
    backoff_max_s: float = BACKOFF_MAX_S
    on_fail: OnFail = OnFail.BURY
    input: Input | None = None
    batch: int | None = None
    task_dir: str | None = None
    keeps_result: bool = False
    result_ttl_s: float = RESULT_TTL_S
    drains: bool = False
    max_items: int | None = None
    max_failures: int | None = None
    idle_s: float | None = None
    grace_s: float | None = None
    reconnect_s: float = RECONNECT_S
    rate: float | None = None
    clean_s: float | None = None


class Plan(NamedTuple):
    """A worker that can begin, if its program is still there."""

    options: Options
    program: bytes | None
    policy: RetryPolicy
    limits: Limits
    work: WorkOptions

    def invocations(
        self, inherited: Mapping[bytes, bytes | None], holder_prefix: bytes, file_directory: str
    ) -> Invocations:
        """Return what makes the commands, given the environment that they inherit."""
        options = self.options
        directory = options.task_dir and os.fsencode(os.path.abspath(options.task_dir))
        return Invocations(
            words=options.words,
            program=self.program,
            task_dir=directory or None,
            input=options.input,
            is_batch=options.batch is not None,
            inherited=inherited,
            holder_prefix=holder_prefix,
            lease_s=options.lease_s,
            file_directory=file_directory,
        )


def make_plan(options: Options, path: str) -> Plan:
    """Plan a worker, whose program is looked for in the directories of `path`.

    Raises:
        InvalidArgument: Options exclude each other, or cannot work.
        CannotRun: The program cannot be run.
    """
    program = None
    if options.task_dir is not None:
        _check_tasks(options.task_dir, options)
    else:
        is_batch = options.batch is not None
        check_command(
            options.words, options.input, is_batch=is_batch, keeps_result=options.keeps_result
        )
        program = find_program(options.words[0], path)
    if options.clean_s is not None and options.clean_s < 1:
        raise InvalidArgument("--clean must be at least 1s", "a clean looks twice, a second apart")
    if options.max_time_s is not None and options.max_time_s <= 0:
        raise InvalidArgument("--max-time must be longer than 0", "without it, there is no limit")
    if options.backoff_s > options.backoff_max_s:
        raise InvalidArgument(
            "--backoff is longer than --backoff-max", f"--backoff-max {options.backoff_s} allows it"
        )
    policy = RetryPolicy(
        options.retries, options.backoff_s, options.backoff_max_s, on_fail=options.on_fail
    )
    work = WorkOptions(
        fair=options.is_fair,
        concurrency=options.jobs or _cores(),
        for_s=options.lease_s,
        policy=policy,
        result_ttl_s=options.result_ttl_s,
        drain=options.drains,
        max_items=inf if options.max_items is None else options.max_items,
        max_failures=inf if options.max_failures is None else options.max_failures,
        idle_s=inf if options.idle_s is None else options.idle_s,
        reconnect_s=options.reconnect_s,
        rate=options.rate or inf,
        stop_s=STOP_S,
    )
    limits = Limits(options.max_time_s, options.kill_after_s, options.grace_s)
    return Plan(options, program, policy, limits, work)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_tasks(task_dir: str, options: Options) -> None:
    if options.words:
        raise InvalidArgument(
            "--task-dir and a command cannot be used together", "the data names the command"
        )
    if options.batch is not None or options.input not in (None, Input.STDIN, Input.NONE):
        wrong = "--batch" if options.batch is not None else f"--input {options.input}"
        raise InvalidArgument(
            f"--task-dir and {wrong} cannot be used together", "a task gets one item on stdin"
        )
    if not os.path.isdir(task_dir):
        raise InvalidArgument(f"--task-dir: no such directory: {task_dir}", "check the path")
