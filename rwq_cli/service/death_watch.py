"""A process that cleans up after this one if it was killed and could not do so itself."""

from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen


class DeathWatch:
    """A program that reads its stdin to the end, which comes when this process has ended.

    Its stdin is a pipe whose other end this process alone has open. It has a process group of its
    own, and a fixed PATH as its only variable. If it cannot be started, there is no watch.
    """

    def __init__(self, command: tuple[str | bytes, ...], *, stderr: int = DEVNULL) -> None:
        self._process: Popen[bytes] | None = None
        with suppress(OSError):
            self._process = Popen(
                command,
                bufsize=0,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=stderr,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                process_group=0,
            )

    def tell(self, line: bytes) -> None:
        """Write a line to its stdin."""
        # It may have been killed.
        with suppress(OSError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line + b"\n")

    def close(self) -> None:
        """End the watch before this process ends."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()
