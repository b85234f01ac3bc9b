"""Files: looking writes none, and what is kept is on the disk before the server is changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq, configure, undo_files
from tests.proxies import Line
from tests.verbs import COMMANDS, LINES, VERBS, fill, has_option, words_of

LOOKING = [
    *((path, "") for path in LINES if COMMANDS[path].manual.reads_only),
    *((path, "--dry-run") for path in LINES if has_option(path, "--dry-run")),
    *((path, "") for path in ("undo", "context list", "context show", "context check")),
]
KEEPING = [path for path in LINES if "undo_file" in VERBS[path].counts.split()]


def files_in(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and directory, with when it was changed, and what is in it."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [home, *home.rglob("*")]
        if not path.is_socket()
    }


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize(("path", "option"), LOOKING)
def test_looking_writes_no_file(rwq: Rwq, foreign: Foreign, path: str, option: str) -> None:
    fill(foreign)
    # A server was here, and something was removed and configured.
    (rwq.home / ".local/state/rwq/local").mkdir(parents=True, mode=0o700)
    configure(rwq.home, f'current = "dev"\n[contexts.dev]\nurl = "{rwq.variables["RWQ_URL"]}"\n')
    assert rwq("rm", "w3", "--yes").code == 0
    before = files_in(rwq.home)
    line = ["local", "status"] if path.startswith("local ") else words_of(path, *option.split())
    rwq(*line, stdin=VERBS[path].stdin)
    assert files_in(rwq.home) == before


class Disk:
    """What would be left of files if the machine stopped now: what was synchronized, with the
    directory of its name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, bytes] = {}
        self.directories: set[str] = set()
        fsync = os.fsync

        def sync(descriptor: int) -> None:
            fsync(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path.is_dir():
                self.directories.add(str(path))
            else:
                self.synced[path.stat().st_ino] = path.read_bytes()

        monkeypatch.setattr(os, "fsync", sync)

    def holds(self, path: Path, text: bytes) -> bool:
        is_named = str(path.parent) in self.directories
        return is_named and text in self.synced.get(path.stat().st_ino, b"")


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("path", KEEPING)
def test_what_is_kept_is_on_the_disk_before_a_change(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    fill(foreign)
    words = words_of(path)
    if path == "complete":
        words = ["complete", "--state", "waiting", "--yes"]
    disk, before, changes = Disk(monkeypatch), contents(foreign.raw), list[bool]()

    def look() -> None:
        if contents(foreign.raw) != before:
            files = undo_files(rwq)
            changes.append(bool(files) and disk.holds(files[0], b'"w1"'))

    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (look(), sync(descriptor)))
    with Line() as line:
        line.before_send = look
        assert rwq(*words).code in (0, 3)
    look()
    assert changes
    assert all(changes), "it was changed before the file was on the disk"


@pytest.mark.parametrize("line", ["set dev -u local:", "use dev", "rm dev"])
def test_settings_are_on_the_disk_before_they_are_used(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    file = configure(rwq.home, '[contexts.dev]\nurl = "local:x"\n')
    disk, replace, replaced = Disk(monkeypatch), os.replace, list[bool]()

    def look(source: Any, target: Any, **options: Any) -> None:
        new = Path(source)
        replaced.append(disk.synced.get(new.stat().st_ino) == new.read_bytes())
        replace(source, target, **options)

    monkeypatch.setattr(os, "replace", look)
    assert rwq("context", *line.split(), variables={"RWQ_URL": ""}).code == 0
    assert replaced == [True]
    assert str(file.parent) in disk.directories
