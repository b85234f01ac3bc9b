"""Copies of the tree, each with an interpreter that imports it, and the end of what runs there."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutants.faults import Fault

ROOT = Path(__file__).parents[2]


class DoesNotApply(Exception):
    """The text of a fault is not in its file once."""


def apply(fault: Fault, root: Path, *, write: bool = True) -> None:
    """Put a fault into a tree.

    Raises:
        DoesNotApply: The code has changed; the fault has to be carried over.
    """
    path = root / fault.file
    text = path.read_text() if path.exists() else ""
    if (found := text.count(fault.find)) != 1:
        raise DoesNotApply(
            f"{fault.name}: {fault.file} has its text {found} times, not once: {fault.find!r}"
        )
    if write:
        path.write_text(text.replace(fault.find, fault.replace))
        # It knows a file by its size and the second of its last change.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def check(faults: Iterable[Fault]) -> None:
    """Raise `DoesNotApply`, with all of their names, if some faults do not apply to this tree."""
    errors = []
    for fault in faults:
        try:
            apply(fault, ROOT, write=False)
        except DoesNotApply as error:
            errors.append(str(error))
    if errors:
        raise DoesNotApply("\n".join(errors))


def copy_sources(to: Path) -> None:
    """Copy what git has, or would have, of the working tree."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def give_interpreter(tree: Path) -> None:
    """Make an environment in which this tree is the installed rwq.

    Processes that the tests start have a directory and variables of their own, so that only the
    interpreter itself can say which rwq is meant. Whatever else is installed is this one's.
    """
    place = tree / ".venv"
    packages = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (place / "bin").mkdir()
    interpreter = place / "bin" / "python"
    real = Path(sys.executable).resolve()
    interpreter.symlink_to(real)
    (place / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "tree.pth").write_text("\n".join([str(tree), *installed]) + "\n")
    words = [interpreter, "-c", "import rwq_cli; print(rwq_cli.__file__)"]
    found = subprocess.run(words, cwd="/", env={}, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tree / "rwq_cli" / "__init__.py", found.stdout


def end_processes_of(place: Path) -> None:
    """Kill every process that has something to do with a folder, however it was started.

    Tests start sessions, daemons and servers. Each has the folder in its command line, in its
    directory or in its variables.
    """
    for _ in range(100):
        found = [pid for pid in _own_processes() if b"%b/" % bytes(place) in _words_of(pid)]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.02)


def _own_processes() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == os.getuid() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def _words_of(pid: int) -> bytes:
    process = Path("/proc", str(pid))
    words = b""
    with suppress(OSError):
        if " Z " not in (process / "stat").read_text():
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            words += bytes(Path(os.readlink(process / "cwd"), "x"))
    return words
