"""Editing data in the user's editor, or with a command."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import (
    Environment,
    interrupts_left_to_child,
    os_errors_as,
    os_reason,
    signals_held,
)
from rwq_cli.processes import is_alive, processes_of

_NAME_MAX = 60
# How long an editor may take to end when told to, and how often that is checked, seconds.
_END_S, _LOOK_S = 1.0, 0.01
# The most items that one run of a command gets with `--lines`.
LINES_MAX = 5000
# The exit codes of a shell for a command that it cannot run.
_CANNOT_RUN = (126, 127)
_REASON_BYTES = 200
# Fewer values than this may trade places by an edit, such as true and false.
_TOLD_APART_MIN = 3


class EditorError(RwqError, code="editor"): ...


class Draft:
    """Data in a separate file, which only this user can read."""

    # Its directory is private, too: editors keep backups next to a file. The file is named after
    # `name`, and its suffix tells an editor the format.
    def __init__(self, data: bytes, name: bytes, suffix: str = "") -> None:
        self._data = data
        readable = re.sub(rb"[^A-Za-z0-9_-]", b"_", name).decode()
        with os_errors_as(EditorError, "cannot write a file to edit", "set TMPDIR"):
            self._directory = Path(mkdtemp(prefix="rwq-edit-"))
            try:
                self.path = self._directory / f"{readable[:_NAME_MAX]}{suffix}"
                self.path.touch(0o600, exist_ok=False)
                self.path.write_bytes(data)
            except BaseException:
                # Also a signal that ends the command.
                self.delete()
                raise

    def read(self) -> bytes:
        """Read the edited data, without a final newline that the editor has added."""
        try:
            text = self.path.read_bytes()
        except OSError as error:
            raise EditorError(f"cannot read {self.path}: {os_reason(error)}; nothing was written")
        if self._data and not text:
            # For example, the editor ran out of disk space.
            raise EditorError(
                "the edited file is empty, so nothing was written", "rwq edit -f writes empty data"
            )
        return strip_added_newline(self._data, text)

    @property
    def is_changed(self) -> bool:
        try:
            return self.read() != self._data
        except EditorError:
            return False

    def delete(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def strip_added_newline(before: bytes, after: bytes) -> bytes:
    if before.endswith(b"\n") or not after.endswith(b"\n"):
        return after
    is_dos = b"\r\n" in before and after.endswith(b"\r\n")
    return after[: -2 if is_dos else -1]


def run_editor(environment: Environment, path: Path) -> None:
    """Let the user edit a file, in `$VISUAL`, else `$EDITOR`, else vi."""
    variables = environment.variables
    commands = (variables.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    editor = next(filter(None, commands), "")
    if not editor:
        if not environment.stdin_is_terminal:
            raise InvalidArgument(
                "neither VISUAL nor EDITOR is set, and there is no terminal for vi",
                "set one of them, or use rwq edit -f",
            )
        editor = "vi"
    # The shell parses arguments and quotes, as for git. It waits for an editor that continues after
    # Ctrl-C.
    command = ["sh", "-c", f'trap : INT QUIT; {editor} "$@"', editor, str(path)]
    # stdout is for results; the editor must not write to it.
    stdout = None if environment.stdout_is_terminal else 2
    environment.flush()
    process: subprocess.Popen[bytes] | None = None
    try:
        with os_errors_as(EditorError, "cannot start the editor"), signals_held():
            process = subprocess.Popen(command, env=variables, stdout=stdout)
        with interrupts_left_to_child():
            code = process.wait()
    except BaseException:
        # A signal that ends the command.
        if process is not None:
            _end(process)
        raise
    if code != 0:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        raise EditorError(
            f"the editor {ended}, so nothing was written", f"VISUAL or EDITOR names it: {editor}"
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the editor, which is a child of the shell, and the shell."""
    others = processes_of(process.pid) - {process.pid}
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The shell first: otherwise it would report how its child ended.
        process.send_signal(number)
        for pid in others:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        ends_s = time.monotonic() + _END_S
        while process.poll() is None or any(map(is_alive, others)):
            if time.monotonic() >= ends_s:
                break
            time.sleep(_LOOK_S)
        else:
            return


class Refused(NamedTuple):
    reason: str


class EditCommand(NamedTuple):
    """A command line for `sh` that reads data on stdin and writes what replaces it."""

    # With `by_lines`, it reads and writes many items, one per line.
    line: str
    by_lines: bool
    # Whether no output is new data, too, and not a failure.
    allows_empty: bool
    variables: Mapping[str, str]
    # The processes that run now: a signal ends them, too.
    running: "set[subprocess.Popen[bytes]]"

    def run(self, data: Sequence[bytes]) -> Iterator[bytes | Refused]:
        """Yield new data for each, or why there is none; raises `EditorError` if it cannot run."""
        with ThreadPoolExecutor(1 if self.by_lines else os.cpu_count()) as pool:
            try:
                if self.by_lines:
                    yield from pool.submit(self._run_on_lines, data).result()
                else:
                    yield from pool.map(self._run_on_one, data)
            except BaseException:
                for process in list(self.running):
                    _end(process)
                raise

    def _run_on_one(self, data: bytes) -> bytes | Refused:
        output = self._output(data)
        if isinstance(output, Refused):
            return output
        return self._checked(data, strip_added_newline(data, output))

    def _run_on_lines(self, data: Sequence[bytes]) -> list[bytes | Refused]:
        several = Refused("it has several lines, which --lines cannot tell from items")
        lines = [line for line in data if b"\n" not in line]
        output = self._output(b"".join(b"%b\n" % line for line in lines)) if lines else b""
        if not isinstance(output, Refused):
            # The last line may end without a newline.
            new_lines = output.removesuffix(b"\n").split(b"\n") if output else []
            if len(new_lines) != len(lines):
                count = f"{len(new_lines):,} lines for {len(lines):,} items"
                output = Refused(f"the command wrote {count}")
            elif _are_reordered(lines, new_lines):
                output = Refused("the command wrote the same lines or values in another order")
            else:
                results = map(self._checked, lines, new_lines)
                return [several if b"\n" in item else next(results) for item in data]
        return [several if b"\n" in item else output for item in data]

    def _checked(self, before: bytes, after: bytes) -> bytes | Refused:
        if before and not after and not self.allows_empty:
            return Refused("the command wrote nothing for it, which needs --allow-empty")
        return after

    def _output(self, data: bytes) -> bytes | Refused:
        pipe = subprocess.PIPE
        with os_errors_as(EditorError, "cannot run sh"):
            done = subprocess.Popen(
                ["sh", "-c", self.line], stdin=pipe, stdout=pipe, stderr=pipe, env=self.variables
            )
        self.running.add(done)
        with done:
            output, errors = done.communicate(data)
        self.running.discard(done)
        if not done.returncode:
            return output
        error_lines = errors[-_REASON_BYTES:].decode("utf-8", "backslashreplace").split("\n")
        reason = next((line for line in reversed(error_lines) if line.strip()), "nothing on stderr")
        if done.returncode in _CANNOT_RUN:
            raise EditorError(f"cannot run the command: {reason}")
        ended = f"code {done.returncode}"
        if done.returncode < 0:
            ended = f"signal {-done.returncode}"
        return Refused(f"the command ended with {ended}: {reason.strip()}")


def _are_reordered(before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    """Whether lines stand in another order than before, or the values of a field of JSON objects
    that tells all of them apart, as after `sort`: which line belongs to which item is then lost."""

    def is_other_order(old: Sequence[bytes], new: Sequence[bytes]) -> bool:
        return old != new and sorted(old) == sorted(new)

    if is_other_order(before, after):
        return True
    decode = Decoder(dict[str, Raw]).decode
    with suppress(DecodeError, KeyError):
        old_objects, new_objects = list(map(decode, before)), list(map(decode, after))
        for name in old_objects[0] if len(before) >= _TOLD_APART_MIN else ():
            old_values = [bytes(value[name]) for value in old_objects]
            if len(set(old_values)) == len(before):
                new_values = [bytes(value.get(name, Raw(b""))) for value in new_objects]
                if is_other_order(old_values, new_values):
                    return True
    return False
