"""Editing data in the user's editor."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import Environment, interrupts_left_to_child, os_reason
from rwq_cli.processes import processes_of

_NAME_MAX = 60
# How long an editor that was told to end may take, and how often it is looked, seconds.
_END_S, _LOOK_S = 1.0, 0.01


class EditorError(RwqError):
    """The data could not be edited."""

    code = "editor"


class Draft:
    """Data in a separate file, which only this user can read.

    Its directory is private, too: editors keep backups next to a file. The file is named after
    `name`, and its suffix tells an editor the format.
    """

    def __init__(self, data: bytes, name: bytes, suffix: str = "") -> None:
        self._data = data
        readable = re.sub(rb"[^A-Za-z0-9_-]", b"_", name).decode()
        try:
            self._directory = Path(mkdtemp(prefix="rwq-edit-"))
        except OSError as error:
            raise EditorError(f"cannot write a file to edit: {os_reason(error)}", "set TMPDIR")
        try:
            self.path = self._directory / f"{readable[:_NAME_MAX]}{suffix}"
            self.path.touch(0o600, exist_ok=False)
            self.path.write_bytes(data)
        except OSError as error:
            self.delete()
            raise EditorError(f"cannot write a file to edit: {os_reason(error)}", "set TMPDIR")
        except BaseException:
            # A signal that ends the command.
            self.delete()
            raise

    def read(self) -> bytes:
        """The edited data, without a final newline that an editor has added.

        Raises:
            EditorError: The file cannot be read, or is empty.
        """
        try:
            text = self.path.read_bytes()
        except OSError as error:
            raise EditorError(f"cannot read {self.path}: {os_reason(error)}; nothing was written")
        if self._data and not text:
            # For example, the editor ran out of disk space.
            raise EditorError(
                "the edited file is empty, so nothing was written", "rwq edit -f writes empty data"
            )
        return without_added_newline(self._data, text)

    @property
    def is_changed(self) -> bool:
        """True if there is any text that would be lost with the file."""
        try:
            return self.read() != self._data
        except EditorError:
            return False

    def delete(self) -> None:
        """Delete the file and whatever an editor left next to it."""
        shutil.rmtree(self._directory, ignore_errors=True)


def without_added_newline(before: bytes, after: bytes) -> bytes:
    """Text without a final newline that the text before did not have."""
    if before.endswith(b"\n") or not after.endswith(b"\n"):
        return after
    is_dos = b"\r\n" in before and after.endswith(b"\r\n")
    return after[: -2 if is_dos else -1]


def run_editor(environment: Environment, path: Path) -> None:
    """Let the user edit a file, in `$VISUAL`, else `$EDITOR`, else vi.

    Raises:
        InvalidArgument: None is named, and there is no terminal for vi.
        EditorError: The editor failed.
    """
    variables = environment.variables
    named = (variables.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    editor = next(filter(None, named), "")
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
    try:
        process = subprocess.Popen(command, env=variables, stdout=stdout)
    except OSError as error:
        raise EditorError(f"cannot start the editor: {os_reason(error)}")
    try:
        with interrupts_left_to_child():
            code = process.wait()
    except BaseException:
        # A signal that ends the command.
        _end(process)
        raise
    if code != 0:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        raise EditorError(
            f"the editor {ended}, so nothing was written", f"VISUAL or EDITOR names it: {editor}"
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the editor, which is a child of the shell, and the shell."""
    # The shell first: it would say how its child has ended.
    left = [process.pid, *(processes_of(process.pid) - {process.pid})]
    for number in (signal.SIGTERM, signal.SIGKILL):
        # What is stopped cannot end.
        left = [pid for pid in left if _sent(pid, number) and _sent(pid, signal.SIGCONT)]
        ends_s = time.monotonic() + _END_S
        while left and time.monotonic() < ends_s:
            process.poll()
            time.sleep(_LOOK_S)
            left = [pid for pid in left if _sent(pid, 0)]
    process.wait()


def _sent(pid: int, number: int) -> bool:
    """Send a signal, or none for 0; False if the process is gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
