"""The job log: a line for each item, tab-separated, in a file that several workers may share."""

import os
from collections.abc import Callable, Iterable

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.streams import write_all


class JobLog:
    """Appends lines to a file; if that fails, it warns once, and work continues."""

    def __init__(self, path: str, warn: Callable[[str], object]) -> None:
        self._path, self._warn = path, warn
        # Whether a line could not be written, or not in full.
        self.is_incomplete = False
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            reason = os_reason(error)
            raise InvalidArgument(f"cannot write the job log {path}: {reason}", "check --joblog")

    def write(self, lines: Iterable[str]) -> None:
        """Append lines, without their ends. Each is one write, so that workers can share a file."""
        for line in lines:
            try:
                write_all(self._fd, f"{line}\n".encode("utf-8", "backslashreplace"))
            except OSError as error:
                if not self.is_incomplete:
                    self.is_incomplete = True
                    why = f"{os_reason(error)}; it is incomplete from now on"
                    self._warn(f"rwq: cannot write the job log {self._path}: {why}")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
