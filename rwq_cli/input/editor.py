"""Editing data in the user's editor."""

import re
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import Environment, interrupts_left_to_child, os_reason

_NAME_MAX = 60


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
        SystemExit: The terminal is gone, or SIGTERM: the caller takes care of the file.
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
    # One that is ignored stays so: `nohup rwq edit`.
    ends = [
        number
        for number in (signal.SIGHUP, signal.SIGTERM)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ends:
        signal.signal(number, _end)
    try:
        with interrupts_left_to_child():
            code = subprocess.run(command, env=variables, stdout=stdout, check=False).returncode
    except OSError as error:
        raise EditorError(f"cannot start the editor: {os_reason(error)}")
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)
    if code != 0:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        raise EditorError(
            f"the editor {ended}, so nothing was written", f"VISUAL or EDITOR names it: {editor}"
        )


def _end(number: int, *_: object) -> None:
    raise SystemExit(128 + number)
