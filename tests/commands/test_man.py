"""`rwq man`: showing a man page, and installing all of them."""

import os
import shutil
from pathlib import Path

import pytest

from rwq_cli.cli.man_pages import all_man_pages
from tests.driver import Rwq

PAGES = dict(all_man_pages())


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((), "rwq"),
        (("ls",), "rwq-ls"),
        (("clean",), "rwq-clean"),
        (("clean", "light"), "rwq-clean-light"),
        (("exit-codes",), "rwq-exit-codes"),
    ],
)
def test_elsewhere_than_on_a_terminal_it_prints_the_source(
    bare_rwq: Rwq, words: tuple[str, ...], name: str
) -> None:
    assert bare_rwq("man", *words).as_tuple() == (0, PAGES[name], "")


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
def test_on_a_terminal_it_shows_the_page(bare_rwq: Rwq, tmp_path: Path) -> None:
    variables = {"MANPAGER": "cat", "PAGER": "cat", "TMPDIR": str(tmp_path)}
    code, screen = bare_rwq.on_terminal("man", "ls", variables=variables)
    text = screen.decode()
    assert code == 0, text
    assert text.startswith("RWQ-LS(1)")
    assert "rwq ls -q jobs" in text
    assert list(tmp_path.iterdir()) == []


def test_without_man_it_says_what_shows_the_same(bare_rwq: Rwq) -> None:
    code, screen = bare_rwq.on_screen("man", "clean", "deep", variables={"PATH": "/nowhere"})
    assert (code, screen.decode()) == (
        1,
        "rwq: error: there is no man program on this machine; rwq help clean deep shows the same "
        "text\n",
    )


def test_install_writes_every_page_and_says_where(bare_rwq: Rwq) -> None:
    pages = bare_rwq.home / ".local/share/man/man1"
    pages.mkdir(parents=True)
    (pages / "rwq-ls.1").write_text("older")
    (pages / "other.1").write_text("other")
    result = bare_rwq("man", "--install")
    assert (result.code, result.text) == (0, "")
    first, second = result.notes.splitlines()
    assert first == f"installed {len(PAGES)} man pages in {pages}"
    assert second.endswith(f"export MANPATH={pages.parent}:$MANPATH")
    installed = {page.name: page.read_text() for page in pages.iterdir()}
    assert installed == {f"{name}.1": text for name, text in PAGES.items()} | {"other.1": "other"}


def test_install_takes_a_directory(bare_rwq: Rwq, tmp_path: Path) -> None:
    directory = tmp_path / "package/share/man"
    assert bare_rwq("man", "--install", "--dir", str(directory)).code == 0
    assert set(os.listdir(directory / "man1")) == {f"{name}.1" for name in PAGES}


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
@pytest.mark.parametrize("variable", ["MANPATH", "PATH"])
def test_install_says_whether_man_finds_the_pages(bare_rwq: Rwq, variable: str) -> None:
    """By MANPATH, or because `~/.local/bin` is in PATH."""
    (bare_rwq.home / ".local/bin").mkdir(parents=True)
    local = str(bare_rwq.home / ".local")
    value = {"MANPATH": f"{local}/share/man:", "PATH": f"{local}/bin:{os.environ['PATH']}"}
    result = bare_rwq("man", "--install", variables={variable: value[variable]})
    assert result.notes.splitlines()[1] == "man finds them: man rwq"
    if Path("/usr/share/man").exists():
        found = bare_rwq.shell(f"{variable}={value[variable]} man -w rwq-ls")
        assert found.text == f"{local}/share/man/man1/rwq-ls.1\n"


def test_a_failed_install_gives_the_reason(bare_rwq: Rwq) -> None:
    (bare_rwq.home / "file").touch()
    result = bare_rwq("man", "--install", "--dir", str(bare_rwq.home / "file"))
    assert (result.code, result.text) == (1, "")
    assert result.notes.startswith(f"rwq: error: cannot write {bare_rwq.home}/file/man1/rwq.1: ")
    assert result.notes.endswith("; choose another --dir\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--install", "ls"), "--install writes every page; leave out ls"),
        (("ls", "--dir", "x"), "--dir is where --install writes; give --install, too"),
        (("stetes",), "no command or topic 'stetes'; try rwq man states"),
    ],
)
def test_wrong_usage(bare_rwq: Rwq, words: tuple[str, ...], error: str) -> None:
    assert bare_rwq("man", *words).as_tuple() == (2, "", f"rwq: error: {error}\n")
