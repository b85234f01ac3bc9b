"""The exit codes of every command, and what each means."""

from enum import IntEnum


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
    """What the exit code of `rwq check` says, in the language of monitoring plugins."""

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
    ExitStatus.SERVER: "the server: unreachable, lost on the way, or it refused",
    ExitStatus.INTERRUPTED: "interrupted",
}
