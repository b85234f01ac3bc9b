"""The exit codes, their meanings, and the exit code of each error."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Self

from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError


class _Code(IntEnum):
    """An exit code with its meaning, as `--help` and the reference give it."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    @property
    def summary(self) -> str:
        return re.split("[:;,]", self.meaning)[0]


class ExitStatus(_Code):
    """The exit codes of all commands except `rwq check`."""

    OK = 0, "success; an empty listing is a success"
    NO = 1, "the answer is no: nothing to lease, no such item, no item of a batch succeeded"
    USAGE = 2, "usage error, or a confirmation was needed and there was no terminal"
    PARTIAL = 3, "done in part: some of a batch failed, or the output could not be written"
    SERVER = 69, "server error: unreachable, connection lost, or a command was refused"
    FAULT = 70, "fault of rwq, or of its machine: a bug, no memory, no thread"
    INTERRUPTED = 130, "interrupted"
    TERMINATED = 143, "SIGTERM; services end with 0"


class MonitoringStatus(_Code):
    """The exit codes of `rwq check`, as monitoring systems expect them."""

    OK = 0, "OK: nothing exceeds a limit"
    WARNING = 1, "WARNING: something exceeds its warning limit"
    CRITICAL = 2, "CRITICAL: something exceeds its critical limit"
    UNKNOWN = (
        3,
        "UNKNOWN: the server is unreachable or refused, a usage error, or a count with a limit is "
        "unknown",
    )


ExitCode = ExitStatus | MonitoringStatus


def batch_status(successes: int, failures: int) -> ExitStatus:
    if not failures:
        return ExitStatus.OK
    return ExitStatus.PARTIAL if successes else ExitStatus.NO


class UsageError(InvalidArgument, code="usage"):
    """The command line cannot be parsed; if `help` is set, it is printed instead of an error."""

    help: str | None = None


class OutputError(RwqError, code="output"): ...


class Fault(RwqError, code="bug"): ...


# The exit code of each error. An error that is not listed has that of its nearest base class.
EXIT_STATUS_OF: Mapping[type[RwqError], ExitStatus] = {
    InvalidArgument: ExitStatus.USAGE,
    ServerError: ExitStatus.SERVER,
    # Such as declined questions, or a missing undo file.
    RwqError: ExitStatus.NO,
    # Not `NO`: a loop around `rwq lease` would take that for an empty queue.
    OutputError: ExitStatus.PARTIAL,
    Fault: ExitStatus.FAULT,
}


def mark_partial(error: BaseException) -> None:
    """Record that something was done before an error, so that its exit code says so."""
    error.__dict__["is_partial"] = True


def exit_status_of(error: RwqError) -> ExitStatus:
    status = next(EXIT_STATUS_OF[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS_OF)
    is_answer = status in (ExitStatus.NO, ExitStatus.USAGE)
    return ExitStatus.PARTIAL if is_answer and "is_partial" in error.__dict__ else status
