"""`rwq man`: the man pages."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.help_subjects import SubjectArgument, find_subject
from rwq_cli.cli.install_file import install_file
from rwq_cli.cli.man_pages import all_man_pages, man_page
from rwq_cli.cli.options import option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import interrupts_left_to_child, user_directory
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.report import Report, Text

app = CommandModule()


@app.command(
    help="Show the man page of a command or a topic, or print its source if stdout is not a "
    "terminal. --install writes all pages to a directory of man pages.",
    examples=("rwq man ls", "rwq man clean light > rwq-clean-light.1", "rwq man --install"),
    exits={ExitStatus.NO: "man is missing or failed, or the pages could not be written"},
    reads_only=True,
)
def man(
    settings: Settings,
    words: SubjectArgument = None,
    install: Annotated[
        bool, option("--install", "Write every page for this user, and print where.")
    ] = False,
    directory: Annotated[
        Path | None,
        option(
            "--dir DIR",
            "With --install: the directory of man pages; they are written to man1 in it. "
            "[default: ~/.local/share/man]",
            Path,
        ),
    ] = None,
) -> Report:
    environment = settings.environment
    if install:
        if words:
            raise InvalidArgument("--install writes every page", f"leave out {words[0]}")
        default = user_directory(environment.variables, "XDG_DATA_HOME", ".local/share") / "man"
        for line in _install(directory or default, environment.variables):
            environment.note(escaped_text(line))
        return Text("")
    if directory is not None:
        raise InvalidArgument("--dir is where --install writes", "give --install, too")
    name, source = man_page(find_subject("man", words or ()))
    if not environment.stdout_is_terminal:
        return Text(source)
    program = _program(environment.variables)
    if program is None:
        same = " ".join(["rwq help", *(words or ())])
        raise RwqError("there is no man program on this machine", f"{same} shows the same text")
    _show(program, name, source, environment.variables)
    return Text("")


def _install(directory: Path, variables: Mapping[str, str]) -> list[str]:
    """Write every page; returns lines that say where, and how man finds them."""
    pages = list(all_man_pages())
    for name, source in pages:
        install_file(source, directory / "man1" / f"{name}.1", "choose another --dir")
    lines = [f"installed {len(pages)} man pages in {directory / 'man1'}"]
    if _is_searched(directory, variables):
        return [*lines, "man finds them: man rwq"]
    path = directory.absolute()
    return [*lines, f"if man does not find them, run: export MANPATH={path}:$MANPATH"]


def _is_searched(directory: Path, variables: Mapping[str, str]) -> bool:
    """Whether man searches this directory, according to `man -w`."""
    program = _program(variables)
    if program is None:
        return False
    # Without a name, it prints the directories that it searches.
    asked = subprocess.run(
        [program, "-w"], env=variables, capture_output=True, text=True, check=False
    )
    searched = asked.stdout.strip().split(":")
    return os.path.realpath(directory) in map(os.path.realpath, filter(None, searched))


def _show(program: str, name: str, source: str, variables: Mapping[str, str]) -> None:
    with TemporaryDirectory(prefix="rwq-man-") as directory:
        page = Path(directory) / f"{name}.1"
        page.write_text(source, "ascii")
        with interrupts_left_to_child():
            exit_code = subprocess.run([program, page], env=variables, check=False).returncode
    if exit_code:
        raise RwqError(f"man failed with {exit_code}")


def _program(variables: Mapping[str, str]) -> str | None:
    return shutil.which("man", path=variables.get("PATH", os.defpath))
