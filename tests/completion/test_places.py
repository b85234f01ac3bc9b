"""`rwq completion`: where a script goes, and that it gets there whole."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from rwq_cli.cli.program import run
from rwq_cli.completion.places import install, place_of, still_to_do
from rwq_cli.completion.shells import FILE_NAMES, Shell
from rwq_cli.core.errors import RwqError
from rwq_cli.environment import Environment
from rwq_cli.exit_codes import ExitStatus
from tests.completion.shells import COMPLETIONS


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    status: ExitStatus
    out: str
    err: str


def rwq(*words: str, **variables: str) -> Ran:
    """Run rwq with nothing but these variables."""
    out, err = io.BytesIO(), io.BytesIO()
    status = run(words, Environment(variables, io.BytesIO(), out, err))
    return Ran(status, out.getvalue().decode(), err.getvalue().decode())


@pytest.mark.parametrize(
    ("shell", "variables", "place"),
    [
        (Shell.BASH, {}, "/h/.local/share/bash-completion/completions/rwq"),
        (Shell.BASH, {"XDG_DATA_HOME": "/d"}, "/d/bash-completion/completions/rwq"),
        (
            Shell.BASH,
            {"XDG_DATA_HOME": "/d", "BASH_COMPLETION_USER_DIR": "/b:/c"},
            "/b/completions/rwq",
        ),
        (Shell.ZSH, {}, "/h/.local/share/zsh/site-functions/_rwq"),
        (Shell.ZSH, {"XDG_DATA_HOME": "/d"}, "/d/zsh/site-functions/_rwq"),
        (Shell.FISH, {}, "/h/.config/fish/completions/rwq.fish"),
        (Shell.FISH, {"XDG_CONFIG_HOME": "/c"}, "/c/fish/completions/rwq.fish"),
        # The XDG specification: a relative path is to be ignored.
        (Shell.FISH, {"XDG_CONFIG_HOME": "c"}, "/h/.config/fish/completions/rwq.fish"),
    ],
)
def test_the_place_of_a_script(shell: Shell, variables: dict[str, str], place: str) -> None:
    assert place_of(shell, {"HOME": "/h", **variables}) == Path(place)


def test_what_is_left_to_the_user() -> None:
    place = Path("/a b/_rwq")
    assert still_to_do(Shell.FISH, place, {}) is None
    assert "source '/a b/_rwq'" in (still_to_do(Shell.BASH, place, {}) or "")
    assert "fpath=('/a b' $fpath)" in (still_to_do(Shell.ZSH, place, {"FPATH": "/x"}) or "")
    assert still_to_do(Shell.ZSH, place, {"FPATH": "/x:/a b"}) is None


def test_install_makes_the_directories_and_replaces_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "new/dir/rwq"
    install("one", place)
    install("two", place)
    assert place.read_text() == "two"
    assert place.stat().st_mode & 0o777 == 0o644
    assert list(place.parent.iterdir()) == [place]


def test_install_leaves_a_link_a_link(tmp_path: Path) -> None:
    place, kept = tmp_path / "rwq", tmp_path / "dotfiles"
    place.symlink_to(kept)
    install("one", place)
    assert (place.is_symlink(), kept.read_text()) == (True, "one")


def test_a_failed_install_leaves_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    place = tmp_path / "rwq"
    install("old", place)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RwqError) as caught:
        install("new", place)
    assert caught.value.message == f"cannot write {place}: no space left on device"
    assert (os.listdir(tmp_path), place.read_text()) == (["rwq"], "old")


@pytest.mark.parametrize("shell", Shell)
def test_the_command_prints_the_script(shell: Shell) -> None:
    script = (COMPLETIONS / FILE_NAMES[shell]).read_text()
    assert rwq("completion", shell) == Ran(ExitStatus.OK, script, "")


@pytest.mark.parametrize("shell", Shell)
def test_the_command_installs_the_script_and_says_where(tmp_path: Path, shell: Shell) -> None:
    ran = rwq("completion", shell, "--install", HOME=str(tmp_path))
    place = place_of(shell, {"HOME": str(tmp_path)})
    assert (ran.status, ran.out) == (ExitStatus.OK, "")
    assert ran.err.splitlines()[0] == f"installed {place}"
    assert place.read_text() == (COMPLETIONS / FILE_NAMES[shell]).read_text()


def test_the_command_that_cannot_install(tmp_path: Path) -> None:
    (tmp_path / ".config").touch()
    ran = rwq("completion", "fish", "--install", HOME=str(tmp_path))
    assert (ran.status, ran.out) == (ExitStatus.NO, "")
    assert ran.err.startswith(f"rwq: error: cannot write {tmp_path}/.config/fish/completions/rwq")


@pytest.mark.parametrize("words", [("nushell",), (), ("bash", "zsh")])
def test_an_unknown_shell_is_wrong_usage(words: tuple[str, ...]) -> None:
    ran = rwq("completion", *words)
    assert (ran.status, ran.out) == (ExitStatus.USAGE, "")
    assert ran.err.startswith("rwq: error: ")
    assert ran.err.count("\n") == 1
