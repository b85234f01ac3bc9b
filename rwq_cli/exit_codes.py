"""The exit codes of every command, what each means, and which error leads to which."""

from collections.abc import Mapping
from enum import IntEnum

from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError


class ExitStatus(IntEnum):
    """What a command's exit code says to a script."""

    OK = 0
    NO = 1
    USAGE = 2
    PARTIAL = 3
    SERVER = 69
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The code in words, as `--help` and the README give it."""
        return _MEANINGS[self]


class MonitoringStatus(IntEnum):
    """What the exit code of `rwq check` says to a monitoring system."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


Code = ExitStatus | MonitoringStatus

_MEANINGS = {
    ExitStatus.OK: "done (an empty listing is done)",
    ExitStatus.NO: "the answer is no: nothing to lease, no such item, nothing of a batch succeeded",
    ExitStatus.USAGE: "wrong usage, or a confirmation was needed and there was no terminal",
    ExitStatus.PARTIAL: "part of a batch failed",
    ExitStatus.SERVER: "server error: unreachable, connection lost, or a command was refused",
    ExitStatus.INTERRUPTED: "interrupted",
}

# The exit code of each error; one that is not here has that of its nearest base class.
EXIT_STATUS_OF: Mapping[type[BaseException], ExitStatus] = {
    InvalidArgument: ExitStatus.USAGE,
    ServerError: ExitStatus.SERVER,
    # Declined, no undo file, output that cannot be written, a bug in rwq.
    RwqError: ExitStatus.NO,
    KeyboardInterrupt: ExitStatus.INTERRUPTED,
    # Whoever reads stdout has read enough, as in `rwq ls | head`.
    BrokenPipeError: ExitStatus.OK,
}


def exit_status_of(error: BaseException) -> ExitStatus:
    """The exit code that an error leads to."""
    return next(EXIT_STATUS_OF[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS_OF)
