"""`rwq edit`: the data of an item, in the user's editor."""

import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Foreign, contents
from tests.driver import TIMEOUT_S, UNDO, Result, Rwq, state_of, undo_files, until

Edit = Callable[..., Result]


@pytest.fixture
def drafts(bare_rwq: Rwq) -> Path:
    """Where the files to edit are."""
    directory = bare_rwq.home / "tmp dir"
    directory.mkdir()
    return directory


@pytest.fixture
def edit(rwq: Rwq, drafts: Path, monkeypatch: pytest.MonkeyPatch) -> Edit:
    """Run `rwq edit` with a shell script as the editor; `$1` in it is the file."""
    monkeypatch.setattr("tempfile.tempdir", str(drafts))

    def run(script: str, *words: str, **variables: str) -> Result:
        editor = rwq.home / "my editor"
        editor.write_text(f"#!/bin/sh\n{script}\n")
        editor.chmod(0o755)
        quoted = shlex.quote(str(editor))
        return rwq("edit", *words, variables={"EDITOR": quoted, **variables})

    return run


def kept(drafts: Path) -> list[bytes]:
    """The texts that are left."""
    return [path.read_bytes() for path in drafts.rglob("*") if path.is_file()]


def test_the_edited_data_is_written(rwq: Rwq, foreign: Foreign, drafts: Path, edit: Edit) -> None:
    foreign.waiting(b"a", b"b")
    before = contents(foreign.raw)
    result = edit('sed -i s/data/DATA/ "$1"', "a")
    (file,) = undo_files(rwq)
    assert result.as_tuple() == (
        0,
        "",
        f"set 1; undo file {UNDO}/{file.name}; rwq undo puts it back\n",
    )
    assert foreign.raw.get("jobs:item:a") == b"DATA of a"
    after = contents(foreign.raw)
    assert [key for key in before if before[key] != after[key]] == [b"jobs:item:a"]
    assert list(drafts.iterdir()) == []


def test_the_file_is_private_and_named_after_the_item(
    rwq: Rwq, foreign: Foreign, edit: Edit
) -> None:
    foreign.raw.set("jobs:item:../a b", '{"a": 1}')
    script = f'ls -ld "$1" "${{1%/*}}" > {shlex.quote(str(rwq.home))}/seen'
    assert edit(script, "../a b").code == 0
    directory, file = sorted((rwq.home / "seen").read_text().splitlines(), reverse=True)
    assert (directory[:10], file[:10]) == ("drwx------", "-rw-------")
    assert file.endswith("/___a_b.json")


@pytest.mark.parametrize(
    ("data", "written", "result"),
    [
        (b"a", b"b\n", b"b"),
        (b"a\n", b"b\n", b"b\n"),
        (b"a", b"b\n\n", b"b\n"),
        (b"a\r\nb", b"a\r\nc\r\n", b"a\r\nc"),
        (b"a\n", b"b", b"b"),
        (b"", b"b\n", b"b"),
    ],
)
def test_a_newline_added_by_the_editor_is_dropped(
    rwq: Rwq, foreign: Foreign, edit: Edit, data: bytes, written: bytes, result: bytes
) -> None:
    foreign.raw.set("jobs:item:a", data)
    (rwq.home / "new").write_bytes(written)
    assert edit(f'cat {shlex.quote(str(rwq.home))}/new > "$1"', "a").code == 0
    assert foreign.raw.get("jobs:item:a") == result


def test_nothing_is_written_if_nothing_changed(
    rwq: Rwq, foreign: Foreign, drafts: Path, edit: Edit
) -> None:
    foreign.waiting(b"a")
    results = [edit(line, "a") for line in ("true", 'echo >> "$1"', 'cp "$1" "$1~"; mv "$1~" "$1"')]
    ends = [(result.code, result.notes.splitlines()[-1]) for result in results]
    assert ends == [(0, "unchanged 1")] * 3
    assert "EDITOR='code --wait'" in edit("true", "a").notes
    assert "wait" not in edit("sleep 0.2", "a").notes
    assert (undo_files(rwq), list(drafts.iterdir())) == ([], [])


class TestEditor:
    def test_is_visual_before_editor(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        variables = {"VISUAL": "sed -i s/a/V/", "EDITOR": "sed -i s/a/E/"}
        assert rwq("edit", "a", variables=variables).code == 0
        assert foreign.raw.get("jobs:item:a") == b"dVta of a"
        assert rwq("edit", "a", variables={**variables, "VISUAL": "  "}).code == 0
        assert foreign.raw.get("jobs:item:a") == b"dVtE of a"

    def test_is_vi_if_none_is_named(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        vi = rwq.home / "bin" / "vi"
        vi.parent.mkdir()
        vi.write_text('#!/bin/sh\nsed -i s/data/vi/ "$1"\n')
        vi.chmod(0o755)
        path = f"{vi.parent}{os.pathsep}/usr/bin:/bin"
        code, _ = rwq.on_terminal("edit", "a", variables={"PATH": path})
        assert (code, foreign.raw.get("jobs:item:a")) == (0, b"vi of a")
        assert rwq("edit", "a", variables={"PATH": path}).as_tuple() == (
            2,
            "",
            "rwq: error: neither VISUAL nor EDITOR is set, and there is no terminal for vi; "
            "set one of them, or use rwq edit -f\n",
        )

    @pytest.mark.parametrize(
        ("script", "said"),
        [("exit 3", "ended with code 3"), ("kill -9 $$", "ended with code 137")],
    )
    def test_that_fails_writes_nothing(
        self, foreign: Foreign, drafts: Path, edit: Edit, script: str, said: str
    ) -> None:
        foreign.waiting(b"a")
        result = edit(script, "a")
        assert (result.code, result.text) == (1, "")
        assert result.notes.startswith(f"rwq: error: the editor {said}, so nothing was written; ")
        assert list(drafts.iterdir()) == []
        # What it has saved before is kept.
        result = edit(f'echo saved > "$1"; {script}', "a")
        assert result.code == 1
        assert f"your text is in {drafts}/rwq-edit-" in result.notes
        assert kept(drafts) == [b"saved\n"]
        assert foreign.raw.get("jobs:item:a") == b"data of a"

    @pytest.mark.parametrize(
        ("number", "ignores"), [(signal.SIGTERM, True), (signal.SIGHUP, False)]
    )
    def test_a_signal_ends_the_editor_and_leaves_no_file(
        self, rwq: Rwq, foreign: Foreign, drafts: Path, number: int, ignores: bool
    ) -> None:
        foreign.waiting(b"a")
        pid = rwq.home / "pid"
        # A child of the shell, as editors are.
        trap = "trap '' TERM HUP; " if ignores else ""
        script = f'sh -c "{trap}echo \\$\\$ > {pid}; exec sleep 60"'
        variables = {"EDITOR": script, "TMPDIR": str(drafts)}
        process = rwq.start("edit", "a", variables=variables)
        until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        assert kept(drafts) == [b"data of a"]
        process.send_signal(number)
        # The editor has these streams, too.
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (143, b"")
        assert state_of(int(pid.read_text())) in ("", "Z")
        assert kept(drafts) == []

    def test_gets_ctrl_c_alone(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        script = f"{sys.executable} -c " + shlex.quote(
            "import signal, sys, time\n"
            "got = []\n"
            "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
            "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
            "print('ready', file=sys.stderr, flush=True)\n"
            "while not got: time.sleep(0.01)\n"
            "open(sys.argv[1], 'w').write('after Ctrl-C')\n"
        )
        process = rwq.start("edit", "a", variables={"EDITOR": script}, start_new_session=True)
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err[:5]) == (0, b"set 1"), err
        assert foreign.raw.get("jobs:item:a") == b"after Ctrl-C"


@pytest.mark.parametrize("goes", [True, False])
def test_a_changed_item_is_left_and_the_text_kept(
    rwq: Rwq, foreign: Foreign, drafts: Path, goes: bool
) -> None:
    foreign.waiting(b"a")
    lock = rwq.home / "lock"
    script = f"sh -c 'echo mine > \"$1\"; while [ ! -e {lock} ]; do sleep 0.02; done' -"
    variables = {"EDITOR": script, "TMPDIR": str(drafts)}
    process = rwq.start("edit", "a", variables=variables)
    until(lambda: kept(drafts) == [b"mine\n"])
    if goes:
        foreign.raw.delete("jobs:item:a")
    else:
        foreign.raw.set("jobs:item:a", "theirs")
    lock.touch()
    out, err = process.communicate(timeout=TIMEOUT_S)
    (path,) = (path for path in drafts.rglob("*") if path.is_file())
    where, reason, summary = err.decode().splitlines()
    word = shlex.quote(str(path))
    again = f"edit -f {word} -q jobs a"
    if goes:
        again = f"add --format raw --id a -f {word} -q jobs"
    assert (process.returncode, out, where) == (
        1,
        b"",
        f"rwq: your text is in {path}; to write it: rwq {again}",
    )
    assert ("no such item" if goes else "it changed meanwhile") in reason
    assert summary == ("missing 1" if goes else "changed 1")
    assert foreign.raw.get("jobs:item:a") == (None if goes else b"theirs")
    assert undo_files(rwq) == []
    written = rwq.shell(where.partition("to write it: ")[2])
    assert written.code == 0
    assert foreign.raw.get("jobs:item:a") == b"mine\n"


@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"x" * 1_000_000 + b"\xc3"])
def test_binary_data_is_refused(foreign: Foreign, drafts: Path, edit: Edit, data: bytes) -> None:
    foreign.waiting(b"a")
    foreign.raw.set("jobs:item:a", data)
    assert edit('echo x > "$1"', "a").as_tuple() == (
        2,
        "",
        "rwq: error: the data of a is binary; see rwq show -o data -q jobs a, "
        "and rwq edit -f FILE\n",
    )
    assert foreign.raw.get("jobs:item:a") == data
    assert list(drafts.iterdir()) == []


# With `-f`.


def test_nothing_in_place_of_data_needs_yes(rwq: Rwq, foreign: Foreign) -> None:
    """An input that failed is empty."""
    foreign.waiting(b"a")
    result = rwq("edit", "a", "-f", "-", stdin=b"")
    assert (result.code, "use --yes" in result.notes) == (2, True)
    assert foreign.raw.get("jobs:item:a") == b"data of a"
    assert rwq("edit", "a", "-f", "-", "--yes", stdin=b"").code == 0
    assert foreign.raw.get("jobs:item:a") == b""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a": 1}', b'{"a": 1'),
        (b"17", b"17 apples"),
        (b'"\xc3\xa4"', b'"\xff"'),
        # Too deep to tell.
        (b"[" * 100_000 + b"]" * 100_000, b"x"),
    ],
    ids=["an object", "a number", "a text", "deep"],
)
def test_to_break_json_needs_yes(rwq: Rwq, foreign: Foreign, before: bytes, after: bytes) -> None:
    foreign.raw.set("jobs:item:a", before)
    result = rwq("edit", "a", "-f", "-", stdin=after)
    assert (result.code, foreign.raw.get("jobs:item:a")) == (2, before)
    assert "use --yes" in result.notes
    assert rwq("edit", "a", "-f", "-", "--yes", stdin=after).code == 0
    assert foreign.raw.get("jobs:item:a") == after
