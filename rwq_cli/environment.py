"""The streams and environment variables of a run, as one object that tests can replace."""

import errno
import fcntl
import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from threading import current_thread, main_thread
from typing import BinaryIO, NoReturn, cast

from rwq_cli.core.errors import RwqError
from rwq_cli.descriptors import Reader, Writer

_USUAL_COLUMNS = 80


class ColourMode(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Environment:
    """The streams and environment variables of a run."""

    # Every command loads this class first. It is not a dataclass, because creating one takes
    # longer.
    # stdout is for results only, and stderr for everything else; all are bytes. A closed stdin is
    # empty, and a write to a closed stdout fails. `note_above` writes a line above the progress
    # line.
    quiet: bool = False
    stdin_is_closed: bool = False
    stdout_is_closed: bool = False
    note_above: Callable[[str], None] | None = None
    stdin_is_terminal = cached_property(lambda self: self.stdin.isatty())
    stdout_is_terminal = cached_property(lambda self: self.stdout.isatty())
    stderr_is_terminal = cached_property(lambda self: self.stderr.isatty())

    def __init__(
        self, variables: Mapping[str, str], stdin: BinaryIO, stdout: BinaryIO, stderr: BinaryIO
    ) -> None:
        self.variables = variables
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.written_once: set[str] = set()

    @classmethod
    def of_process(cls) -> "Environment":
        """Return the streams and variables of this process; make what prints text use them, too."""
        is_closed = [stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)]
        for descriptor in (0, 1, 2):
            if is_closed[descriptor]:
                # Else a connection would get its number. A write fails: it is open for reading.
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, descriptor)
                if null != descriptor:
                    os.close(null)
        out, err = (cast(BinaryIO, Writer(descriptor)) for descriptor in (1, 2))
        for name, stream in (("stdout", out), ("stderr", err)):
            text = io.TextIOWrapper(stream, "utf-8", "surrogateescape", write_through=True)
            setattr(sys, name, text)
        environment = cls(os.environ, cast(BinaryIO, Reader(0)), out, err)
        environment.stdin_is_closed, environment.stdout_is_closed, _ = is_closed
        return environment

    @cached_property
    def stdout_is_pipe(self) -> bool:
        """True if another program reads the results; it may write to the same terminal."""
        try:
            mode = os.fstat(self.stdout.fileno()).st_mode
        except (OSError, ValueError):
            return True
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    @property
    def width(self) -> int:
        return self._columns_of(self.stdout, self.stderr)

    @property
    def stderr_width(self) -> int:
        return self._columns_of(self.stderr, self.stdout)

    def _columns_of(self, *streams: BinaryIO) -> int:
        with suppress(ValueError):
            if (columns := int(self.variables.get("COLUMNS", ""))) > 0:
                return columns
        for stream in streams:
            with suppress(OSError, ValueError):
                if columns := os.get_terminal_size(stream.fileno()).columns:
                    return columns
        return _USUAL_COLUMNS

    def flush(self) -> None:
        with suppress(OSError):
            self.stdout.flush()

    def note(self, line: str, *, once: bool = False) -> None:
        """Write a line to stderr, if it is still open and the run is not quiet; see `error`."""
        if not self.quiet:
            self.error(line, once=once)

    def error(self, line: str, *, once: bool = False) -> None:
        """Write a line to stderr, if it is still open; with `once`, only the first time."""
        if once and line in self.written_once:
            return
        if once:
            self.written_once.add(line)
        with suppress(OSError):
            if self.note_above is not None:
                self.note_above(line)
                return
            self.stderr.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.stderr.flush()


def user_directory(variables: Mapping[str, str], name: str, default: str) -> Path:
    # `name` is the variable that names it, and `default` the fallback in the home directory.
    folder = variables.get(name, "")
    if os.path.isabs(folder):
        return Path(folder)
    home = variables.get("HOME") or os.path.expanduser("~")
    if home == "~":
        # The user ID has no account, as in some containers. Debian uses this home for accounts
        # that have none.
        home = "/nonexistent"
    return Path(home) / default


def try_flock(descriptor: int, kind: int) -> bool:
    """Take the lock of an open file if it is free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_terminal() -> int:
    """Open this process's terminal, even if no stream is connected to it; return a descriptor."""
    return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)


def has_terminal() -> bool:
    try:
        os.close(open_terminal())
    except OSError:
        return False
    return True


@contextmanager
def signals_to(handler: Callable[..., object], *numbers: int) -> Iterator[None]:
    """Handle these signals with this function in the block."""
    before = [(number, signal.signal(number, handler)) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in before:
            signal.signal(number, earlier)


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals in the block, which starts a process, and raise them again after it.

    By then, the code that ends the process knows it.
    """
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    is_main = current_thread() is main_thread()
    with signals_to(lambda number, _: came.append(number), *(handled if is_main else ())):
        yield
    for number in came:
        signal.raise_signal(number)


def interrupts_left_to_child() -> AbstractContextManager[None]:
    """Leave Ctrl-C and Ctrl-\\ in the block to a child process, which has the terminal."""
    # A handler, unlike SIG_IGN, is not inherited by the child.
    return signals_to(lambda *_: None, signal.SIGINT, signal.SIGQUIT)


@contextmanager
def os_errors_as(kind: type[RwqError], what: str, hint: str | None = None) -> Iterator[None]:
    """Turn an `OSError` in the block into such an error, whose message ends with the reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {os_reason(error)}", hint) from error


def raising_on_terminate(*, replaces: bool = False) -> AbstractContextManager[None]:
    """Make SIGTERM and SIGHUP raise `SystemExit` in the block, unless they are ignored.

    For what must not be left behind: a child process, or a file. Other handlers stay, unless it
    `replaces` them, and so do all outside the main thread, which is the one to set handlers.
    """
    numbers = (signal.SIGTERM, signal.SIGHUP) if current_thread() is main_thread() else ()
    before = {number: signal.getsignal(number) for number in numbers}
    handled = [number for number, now in before.items() if replaces or now is signal.SIG_DFL]
    handled = [number for number in handled if before[number] is not signal.SIG_IGN]

    def end(*_: object) -> NoReturn:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(143)

    return signals_to(end, *handled)


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def os_reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def how_to_install(requirement: str) -> str | None:
    """Return the command that adds a package to this installation of rwq; None if unclear."""
    # It never names `rwq-cli[EXTRA]`: rwq is on no registry, so anyone could take that name.
    from importlib.util import find_spec
    from shlex import quote

    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        return f"pipx inject {quote(environment.name)} {quote(requirement)}"
    if sys.prefix == sys.base_prefix:
        # The system's Python, which its package manager may manage.
        return None
    pip = "uv pip install --python {}" if find_spec("pip") is None else "{} -m pip install"
    return f"{pip.format(quote(sys.executable))} {quote(requirement)}"
