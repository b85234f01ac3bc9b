"""The exit codes, their meanings, and the exit code of each error."""

from collections.abc import Mapping
from enum import IntEnum

from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError


class OutputError(RwqError):
    """The output cannot be written."""

    code = "output"


class Bug(RwqError):
    """An unexpected error."""

    code = "bug"


class ExitStatus(IntEnum):
    """The exit codes of all commands except `rwq check`. From 69 on, those of sysexits.h."""

    OK = 0
    NO = 1
    USAGE = 2
    PARTIAL = 3
    SERVER = 69
    BUG = 70
    OUTPUT = 74
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning, for `--help` and the reference."""
        return _MEANINGS[self]


class MonitoringStatus(IntEnum):
    """The exit codes of `rwq check`, as monitoring systems expect them."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3

    @property
    def meaning(self) -> str:
        """The code in words, as `--help` and the reference give it."""
        return _MONITORING_MEANINGS[self]


ExitCode = ExitStatus | MonitoringStatus

_MEANINGS = {
    ExitStatus.OK: "success; an empty listing is a success",
    ExitStatus.NO: "the answer is no: nothing to lease, no such item, no item of a batch succeeded",
    ExitStatus.USAGE: "wrong usage, or a confirmation was needed and there was no terminal",
    ExitStatus.PARTIAL: "part of a batch failed",
    ExitStatus.SERVER: "server error: unreachable, connection lost, or a command was refused",
    ExitStatus.BUG: "a bug in rwq",
    ExitStatus.OUTPUT: "the output cannot be written: what was done stays done",
    ExitStatus.INTERRUPTED: "interrupted",
}

_MONITORING_MEANINGS = {
    MonitoringStatus.OK: "OK: nothing exceeds a limit",
    MonitoringStatus.WARNING: "WARNING: something exceeds its warning limit",
    MonitoringStatus.CRITICAL: "CRITICAL: something exceeds its critical limit",
    MonitoringStatus.UNKNOWN: "UNKNOWN: the server is unreachable or refused, wrong usage, or a "
    "count with a limit is unknown",
}

# The exit code of each error. An error that is not listed has that of its nearest base class.
EXIT_STATUS_OF: Mapping[type[BaseException], ExitStatus] = {
    InvalidArgument: ExitStatus.USAGE,
    ServerError: ExitStatus.SERVER,
    # Not `NO`: a loop would end as if the queue were empty.
    OutputError: ExitStatus.OUTPUT,
    Bug: ExitStatus.BUG,
    # Declined, no undo file.
    RwqError: ExitStatus.NO,
    KeyboardInterrupt: ExitStatus.INTERRUPTED,
    # The reader of stdout has closed it, as in `rwq ls | head`.
    BrokenPipeError: ExitStatus.OK,
}


def exit_status_of(error: BaseException) -> ExitStatus:
    """The exit code of an error."""
    return next(EXIT_STATUS_OF[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS_OF)
