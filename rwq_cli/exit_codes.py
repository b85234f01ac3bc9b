"""The exit codes, their meanings, and the exit code of each error."""

import re
from collections.abc import Mapping
from enum import IntEnum

from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError


class ExitStatus(IntEnum):
    """The exit codes of all commands except `rwq check`."""

    OK = 0
    NO = 1
    USAGE = 2
    PARTIAL = 3
    SERVER = 69
    FAULT = 70
    INTERRUPTED = 130
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        """The meaning, for `--help` and the reference."""
        return _MEANINGS[self]

    @property
    def summary(self) -> str:
        """The meaning in a few words."""
        return re.split("[:;,]", self.meaning)[0]


class MonitoringStatus(IntEnum):
    """The exit codes of `rwq check`, as monitoring systems expect them."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3

    @property
    def meaning(self) -> str:
        """The code in words, as `--help` and the reference give it."""
        return _MEANINGS[self.name]


ExitCode = ExitStatus | MonitoringStatus

_MEANINGS: Mapping[ExitStatus | str, str] = {
    ExitStatus.OK: "success; an empty listing is a success",
    ExitStatus.NO: "the answer is no: nothing to lease, no such item, no item of a batch succeeded",
    ExitStatus.USAGE: "wrong usage, or a confirmation was needed and there was no terminal",
    ExitStatus.PARTIAL: "done in part: some of a batch failed, or the output could not be written",
    ExitStatus.SERVER: "server error: unreachable, connection lost, or a command was refused",
    ExitStatus.FAULT: "fault of rwq, or of its machine: a bug, no memory, no thread",
    ExitStatus.INTERRUPTED: "interrupted",
    ExitStatus.TERMINATED: "SIGTERM; services end with 0",
    "OK": "OK: nothing exceeds a limit",
    "WARNING": "WARNING: something exceeds its warning limit",
    "CRITICAL": "CRITICAL: something exceeds its critical limit",
    "UNKNOWN": "UNKNOWN: the server is unreachable or refused, wrong usage, or a count with a "
    "limit is unknown",
}


def batch_status(successes: int, failures: int) -> ExitStatus:
    """The exit code of a batch, of which some may have failed."""
    if not failures:
        return ExitStatus.OK
    return ExitStatus.PARTIAL if successes else ExitStatus.NO


class UsageError(InvalidArgument):
    """The command line cannot be parsed; `help` is printed in place of an error if there is one."""

    code = "usage"
    help: str | None = None


class OutputError(RwqError):
    """The output cannot be written."""

    code = "output"


class Fault(RwqError):
    """A bug, or a machine without memory, threads or file descriptors."""

    code = "bug"


# The exit code of each error. An error that is not listed has that of its nearest base class.
EXIT_STATUS_OF: Mapping[type[BaseException], ExitStatus] = {
    InvalidArgument: ExitStatus.USAGE,
    ServerError: ExitStatus.SERVER,
    # Such as declined questions, or a missing undo file.
    RwqError: ExitStatus.NO,
    # Not `NO`: a loop around `rwq lease` would take that for an empty queue.
    OutputError: ExitStatus.PARTIAL,
    Fault: ExitStatus.FAULT,
    KeyboardInterrupt: ExitStatus.INTERRUPTED,
    # The reader of stdout has closed it, as in `rwq ls | head`.
    BrokenPipeError: ExitStatus.OK,
}


def mark_partial(error: BaseException) -> None:
    """Note that something was done before an error: its exit code is not that of nothing done."""
    error.__dict__["is_partial"] = True


def exit_status_of(error: BaseException) -> ExitStatus:
    """The exit code of an error."""
    status = next(EXIT_STATUS_OF[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS_OF)
    is_answer = status in (ExitStatus.NO, ExitStatus.USAGE)
    return ExitStatus.PARTIAL if is_answer and "is_partial" in error.__dict__ else status
