"""Directories that are this user's alone: the data's, and the short one for a socket."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rwq_cli.core.errors import LocalServerError

PRIVATE_MODE = 0o700


def default_directory(environ: Mapping[str, str]) -> Path:
    """Where the data of plain `local:` lie.

    Args:
        environ: The environment; `XDG_STATE_HOME` and `HOME` are read.

    Returns:
        `$XDG_STATE_HOME/rwq/local`, or `~/.local/state/rwq/local` where the variable is not set or
        not absolute.
    """
    state = environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a relative path is invalid and to be ignored.
    if os.path.isabs(state):
        return Path(state, "rwq", "local")
    home = environ.get("HOME")
    return Path(home or Path.home(), ".local", "state", "rwq", "local")


@contextmanager
def plain_errors(doing: str, place: Path) -> Iterator[None]:
    """Tell a failure of the file system in one line.

    Args:
        doing: What was tried, to be read after "cannot".
        place: The file or directory that it was tried with.

    Raises:
        LocalServerError: The body raised an OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalServerError(f"cannot {doing} {place}: {reason}") from error


def make_data_directory(directory: Path, marker: str) -> None:
    """Make sure that the directory exists and is closed to everybody else.

    Args:
        directory: The data's directory.
        marker: The name of a file that is in every data directory of ours.

    Raises:
        LocalServerError: It cannot be made, is not a directory, is someone else's, or is open to
            others and holds files that are not ours. One of ours is closed to the others instead.
    """
    with plain_errors("make the directory", directory):
        try:
            directory.mkdir(mode=PRIVATE_MODE, parents=True)
        except FileExistsError:
            if not directory.is_dir():
                raise LocalServerError(f"{directory} is not a directory") from None
    with plain_errors("use the directory", directory):
        facts = directory.stat()
        _refuse_other_owner(directory, facts)
        if not stat.S_IMODE(facts.st_mode) & 0o077:
            return
        entries = os.listdir(directory)
        # `local:/tmp` or `local:$HOME`, by mistake, must not be closed to everybody else.
        if entries and marker not in entries:
            raise LocalServerError(
                f"{directory} is open to other users and holds other files",
                f"give a directory of its own, or chmod 700 {directory}",
            )
        directory.chmod(PRIVATE_MODE)


def has_data_directory(directory: Path) -> bool:
    """Whether the directory exists; nothing is made or changed.

    Args:
        directory: The data's directory.

    Raises:
        LocalServerError: It is someone else's, not a directory, or cannot be looked at.
    """
    with plain_errors("use the directory", directory):
        try:
            facts = directory.stat()
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(facts.st_mode):
            raise LocalServerError(f"{directory} is not a directory")
        _refuse_other_owner(directory, facts)
        return True


def make_socket_directory(directory: Path) -> None:
    """Make a private directory in a place where everybody may write, or accept the one we made.

    Args:
        directory: The socket's directory.

    Raises:
        LocalServerError: It cannot be made, or what is there is not a directory of this user.
    """
    with plain_errors("make the socket's directory", directory):
        try:
            directory.mkdir(mode=PRIVATE_MODE)
        except FileExistsError:
            check_socket_directory(directory)


def check_socket_directory(directory: Path) -> None:
    """Refuse what someone else may have put where our socket's directory is expected.

    Args:
        directory: The socket's directory.

    Raises:
        LocalServerError: It is a symlink, not a directory, or someone else's.
    """
    with plain_errors("use the socket's directory", directory):
        # lstat: in a directory open to all, a symlink may be anybody's.
        facts = directory.lstat()
        if not stat.S_ISDIR(facts.st_mode):
            raise LocalServerError(
                f"the socket's directory {directory} is not a real directory", "remove it"
            )
        _refuse_other_owner(directory, facts)
        if stat.S_IMODE(facts.st_mode) & 0o077:
            directory.chmod(PRIVATE_MODE)


def _refuse_other_owner(directory: Path, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid():
        raise LocalServerError(
            f"{directory} belongs to another user (uid {facts.st_uid})",
            "give a directory of your own: local:/some/dir",
        )
