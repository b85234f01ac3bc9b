"""The password of a context: a command's one line, or a file's first."""

import os
from pathlib import Path

import pytest

from rwq_cli.contexts import password
from rwq_cli.contexts.config import Context
from rwq_cli.contexts.password import PasswordCommandFailed, password_of
from rwq_cli.core.errors import InvalidArgument
from tests.driver import state_of, until

FILE = Path("/etc/rwq/config.toml")


def printed_by(command: str) -> str | None:
    return password_of(Context(name="prod", url="redis://db1", password_command=command), FILE)


@pytest.mark.parametrize("command", ["echo hunter2", "printf hunter2", r"printf 'hunter2\r\n'"])
def test_the_one_line_is_the_password(command: str) -> None:
    assert printed_by(command) == "hunter2"


def test_a_child_that_keeps_stdout_is_not_waited_for(tmp_path: Path) -> None:
    child = f"(until [ -e {tmp_path}/go ]; do sleep 0.01; done; touch {tmp_path}/done) &"
    assert printed_by(f"{child} echo hunter2") == "hunter2"
    assert not (tmp_path / "done").exists()
    (tmp_path / "go").touch()


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("exit 3", "failed with exit code 3"),
        ("echo hunter2; exit 1", "failed with exit code 1"),
        ("no-such-command 2>/dev/null", "failed with exit code 127"),
        ("kill -9 $$", "was ended by signal 9"),
        ("printf 'hunter2\nmore\n'", "printed 2 lines instead of one"),
        ("true", "printed nothing"),
        ("echo", "printed nothing"),
        (r"printf '\377'", "printed something that is not UTF-8"),
    ],
)
def test_an_error_is_named_without_what_was_printed(command: str, how: str) -> None:
    with pytest.raises(PasswordCommandFailed) as caught:
        printed_by(command)
    assert caught.value.message == f"the password_command of context prod {how}"
    assert caught.value.hint == "rwq context show prod shows it: try it in a shell"


@pytest.mark.parametrize("has_terminal", [False, True])
def test_a_command_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_terminal: bool
) -> None:
    monkeypatch.setattr(password, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(password, "has_terminal", lambda: has_terminal)
    with pytest.raises(PasswordCommandFailed, match=r"did not end within 0\.2 s"):
        printed_by(f"echo $$ > {tmp_path}/pid; echo x; sleep 3600; echo y")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: state_of(pid) == "")


def test_the_file_is_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\nmore\n")
    context = Context(name="prod", url="redis://db1", password_file="secret")
    for mode in (0o644, 0o640):
        (tmp_path / "secret").chmod(mode)
        with pytest.raises(InvalidArgument, match="other users can read"):
            password_of(context, tmp_path / "config.toml")
    (tmp_path / "secret").chmod(0o600)
    names = ("secret", str(tmp_path / "secret"))
    contexts = [Context(name="prod", url="redis://db1", password_file=name) for name in names]
    passwords = [password_of(context, tmp_path / "config.toml") for context in contexts]
    assert passwords == ["hunter2"] * 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (b"", "it is empty"),
        (b"\r\nhunter2\n", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        ("hunter2\n".encode("utf-16"), "it is UTF-16, not UTF-8; iconv -f UTF-16 -t UTF-8"),
        (b"\xff", "it is not UTF-8"),
    ],
)
def test_a_file_without_a_password_is_named(tmp_path: Path, text: bytes, wrong: str) -> None:
    (tmp_path / "secret").write_bytes(text)
    with pytest.raises(InvalidArgument, match=f"password file {tmp_path}/secret: {wrong}"):
        password.read_password_file(tmp_path / "secret", "--password-file")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    context = Context(name="prod", url="redis://db1", password_file="nowhere")
    with pytest.raises(InvalidArgument) as caught:
        password_of(context, tmp_path / "config.toml")
    assert f"cannot read the password file {tmp_path}/nowhere: no such file" in str(caught.value)
    assert caught.value.hint == "check password_file of context prod"


def test_a_password_comes_in_time_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password, "TIMEOUT_S", 0.2)
    reads, writes = os.pipe()
    pipe = Path(f"/dev/fd/{reads}")
    os.write(writes, b"hunter2\nmore")
    assert password.read_password_file(pipe, "--password-file") == "hunter2"
    with pytest.raises(InvalidArgument, match=r"nothing came within 0\.2 s"):
        password.read_password_file(pipe, "--password-file")
    for end in (reads, writes):
        os.close(end)
    with pytest.raises(InvalidArgument, match="its first line is too long"):
        password.read_password_file(Path("/dev/zero"), "--password-file")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(InvalidArgument, match="nothing came within"):
        password.read_password_file(fifo, "--password-file")
