"""`rwq completion`: printing a script, and installing it."""

import os
from pathlib import Path

import pytest

from rwq_cli.cli.install_file import install_file
from rwq_cli.completion.install import remaining_step, script_path
from rwq_cli.completion.scripts import FILE_NAMES, Shell
from rwq_cli.core.errors import RwqError
from tests.completion.shells import COMPLETIONS
from tests.driver import Rwq


@pytest.mark.parametrize(
    ("shell", "variables", "path"),
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
        # The XDG specification says to ignore a relative path.
        (Shell.FISH, {"XDG_CONFIG_HOME": "c"}, "/h/.config/fish/completions/rwq.fish"),
    ],
)
def test_the_path_of_a_script(shell: Shell, variables: dict[str, str], path: str) -> None:
    assert script_path(shell, {"HOME": "/h", **variables}) == Path(path)


def test_the_remaining_step_depends_on_the_shell() -> None:
    path = Path("/a b/_rwq")
    assert remaining_step(Shell.FISH, path, {}) is None
    assert "source '/a b/_rwq'" in (remaining_step(Shell.BASH, path, {}) or "")
    assert "fpath=('/a b' $fpath)" in (remaining_step(Shell.ZSH, path, {"FPATH": "/x"}) or "")
    assert remaining_step(Shell.ZSH, path, {"FPATH": "/x:/a b"}) is None


def test_install_creates_the_directories_and_replaces_an_older_script(tmp_path: Path) -> None:
    path = tmp_path / "new/dir/rwq"
    install_file("one", path, "hint")
    install_file("two", path, "hint")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_install_keeps_a_symlink(tmp_path: Path) -> None:
    path, kept = tmp_path / "rwq", tmp_path / "dotfiles"
    path.symlink_to(kept)
    install_file("one", path, "hint")
    assert (path.is_symlink(), kept.read_text()) == (True, "one")


def test_a_failed_install_keeps_the_older_script_and_gives_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    path = tmp_path / "rwq"
    install_file("old", path, "hint")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RwqError) as caught:
        install_file("new", path, "hint")
    assert caught.value.message == f"cannot write {path}: no space left on device"
    assert (os.listdir(tmp_path), path.read_text()) == (["rwq"], "old")


@pytest.mark.parametrize("shell", Shell)
def test_the_command_prints_the_script(bare_rwq: Rwq, shell: Shell) -> None:
    script = (COMPLETIONS / FILE_NAMES[shell]).read_text()
    assert bare_rwq("completion", shell).as_tuple() == (0, script, "")


@pytest.mark.parametrize("shell", Shell)
def test_the_command_installs_the_script_and_prints_the_path(bare_rwq: Rwq, shell: Shell) -> None:
    result = bare_rwq("completion", shell, "--install")
    path = script_path(shell, bare_rwq.variables)
    assert (result.code, result.out) == (0, b"")
    assert result.notes.splitlines()[0] == f"installed {path}"
    assert path.read_text() == (COMPLETIONS / FILE_NAMES[shell]).read_text()


def test_the_command_fails_if_it_cannot_write(bare_rwq: Rwq) -> None:
    config = bare_rwq.home / ".config"
    config.touch()
    result = bare_rwq("completion", "fish", "--install")
    assert (result.code, result.out) == (1, b"")
    assert result.notes.startswith(f"rwq: error: cannot write {config}/fish/completions/rwq")


@pytest.mark.parametrize("words", [("nushell",), (), ("bash", "zsh")])
def test_an_unknown_shell_is_a_usage_error(bare_rwq: Rwq, words: tuple[str, ...]) -> None:
    result = bare_rwq("completion", *words)
    assert (result.code, result.out) == (2, b"")
    assert result.notes.startswith("rwq: error: ")
    assert result.notes.count("\n") == 1
