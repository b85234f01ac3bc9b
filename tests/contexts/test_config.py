"""Reading config.toml, what is wrong with it, and changing it: comments stay."""

import io
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import asdict

from rwq_cli.cli.settings import Settings
from rwq_cli.contexts.config import KEYS, Context, ContextError, Protection, read_contexts
from rwq_cli.contexts.editing import set_context, use_context
from rwq_cli.environment import Environment

FULL = """
current = "prod"
previous = "dev"

[contexts.prod]
url = "rediss://ops@db1:6380/0"
queue = "jobs"
password_command = "pass show redis/prod"
color = "red"
read_only = true
protect = "type"

[contexts."dev.eu"]
url = "local:"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def write(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def what_is_wrong(path: Path, text: str | bytes) -> str:
    with pytest.raises(ContextError) as caught:
        read_contexts(write(path, text))
    return f"{caught.value.message}; {caught.value.hint}"


def test_the_file_is_where_xdg_says() -> None:
    def place(**variables: str) -> Path:
        streams = (io.BytesIO(), io.BytesIO(), io.BytesIO())
        return Settings(Environment({"HOME": "/home/ann", **variables}, *streams)).contexts_path

    assert place() == Path("/home/ann/.config/rwq/config.toml")
    assert place(XDG_CONFIG_HOME="/etc/x") == Path("/etc/x/rwq/config.toml")
    assert place(XDG_CONFIG_HOME="x") == place()


def test_every_setting_is_read(path: Path) -> None:
    contexts = read_contexts(write(path, FULL))
    assert (contexts.current, contexts.previous) == ("prod", "dev")
    assert list(contexts.by_name) == ["prod", "dev.eu"]
    assert asdict(contexts.get("prod")) == {
        "name": "prod",
        "url": "rediss://ops@db1:6380/0",
        "queue": "jobs",
        "password_command": "pass show redis/prod",
        "password_file": None,
        "color": "red",
        **dict.fromkeys(("tls_ca", "tls_cert", "tls_key", "undo_dir")),
        "tls_insecure": False,
        "read_only": True,
        "protect": Protection.TYPE,
    }
    assert contexts.get("dev.eu") == Context(name="dev.eu", url="local:")


def test_a_missing_file_has_no_contexts(path: Path) -> None:
    assert read_contexts(path).by_name == {}
    assert read_contexts(Path("/dev/null/config.toml")).by_name == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[contexts.prod", "is not TOML: "),
        ("x = " + "[" * 5000, "is not TOML: "),
        (b"current = '\xff'", "is not TOML: it is not UTF-8"),
        (FULL.encode("utf-16"), "is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8"),
        ("curent = 'a'", "has an unknown key 'curent'; known keys: current, previous, contexts"),
        ("contexts = 1", "expected `object`, got `int`; write [contexts.NAME] tables"),
        ("current = 1", "current of "),
        ("[contexts]\na = 1", "contexts of "),
        ("[contexts.' ']\nurl = 'redis://a'", "a context cannot be named ' '"),
        ("[contexts.-]\nurl = 'redis://a'", "a context cannot be named '-'"),
        ("[contexts.a]\nqueue = 'jobs'", " has no url; add url = "),
        ("[contexts.a]\nurl = ''", "url of context a in "),
        ("[contexts.a]\nurl = 1", "cannot be used: expected `str`, got `int`"),
        ("[contexts.a]\nurl = 'local:'\nread_only = 'yes'", "expected `bool`, got "),
        ("[contexts.a]\nurl = 'local:'\nread_only = 1", "expected `bool`, got "),
        ("[contexts.a]\nurl = 'local:'\nprotect = 'all'", "it must be one of none, ask, type"),
        ("[contexts.a]\nurl = 'local:'\ncolor = 'pink'", "it must be one of red, green"),
    ],
)
def test_what_is_wrong_is_named(path: Path, text: str | bytes, wrong: str) -> None:
    assert wrong in what_is_wrong(path, text)


def test_an_unknown_key_names_its_place_and_known_keys(path: Path) -> None:
    wrong = what_is_wrong(path, "[contexts.prod]\nurl = 'local:'\nproteckt = 'type'")
    known = ", ".join(KEYS)
    assert wrong == f"context prod in {path} has an unknown key 'proteckt'; known keys: {known}"


@pytest.mark.parametrize(
    "given",
    [
        "url = 'redis://:hunter2@a'\npassword_file = 'f'",
        "url = 'redis://a?password=hunter2'\npassword_command = 'c'",
        "url = 'redis://a'\npassword_file = 'f'\npassword_command = 'c'",
    ],
)
def test_a_context_has_one_password(path: Path, given: str) -> None:
    wrong = what_is_wrong(path, f"[contexts.a]\n{given}")
    assert wrong.endswith("; keep one of them")
    assert "hunter2" not in wrong


SECRET = "[contexts.a]\nurl = 'redis://:hunter2@db1'\n[contexts.b]\nurl = 'redis://db2'\n"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604], ids=oct)
def test_a_password_that_others_may_read_is_not_used(path: Path, mode: int) -> None:
    contexts = read_contexts(write(path, SECRET, mode))
    assert contexts.get("b").url == "redis://db2"
    with pytest.raises(ContextError) as caught:
        contexts.get("a")
    assert str(caught.value).startswith(f"{path} holds the password of context a")
    assert caught.value.hint == f"chmod 600 {path}"
    assert read_contexts(write(path, FULL, mode)).get("prod").queue == "jobs"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666], ids=oct)
def test_a_file_others_may_write_is_refused(path: Path, mode: int) -> None:
    with pytest.raises(ContextError, match="other users can write"):
        read_contexts(write(path, FULL, mode))


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777], ids=oct)
@pytest.mark.parametrize("name", ["rwq/config.toml", "link"])
def test_a_file_where_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: int
) -> None:
    path, folder = tmp_path / name, tmp_path / "rwq"
    folder.mkdir()
    (tmp_path / "link").symlink_to(write(folder / "config.toml", FULL))
    folder.chmod(mode)
    with pytest.raises(ContextError) as caught:
        read_contexts(path)
    assert caught.value.message == f"other users can write to {folder}"
    assert caught.value.hint == f"chmod go-w {folder}, if it is yours"
    # In a sticky one they cannot.
    folder.chmod(0o1777)
    assert read_contexts(path).current == "prod"
    # As a system's ssh configuration, it may be root's, but no other user's.
    owner = os.stat(path).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner:
        with pytest.raises(ContextError, match="other users can write"):
            read_contexts(path)
    else:
        assert read_contexts(path).current == "prod"


def test_pipes_and_endless_files_are_refused(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path, 0o600)
    with pytest.raises(ContextError, match="is not a regular file"):
        read_contexts(path)
    with pytest.raises(ContextError, match="is not a regular file"):
        read_contexts(Path("/dev/zero"))


WRITTEN = """# Our servers. Ask Ann before you touch prod.

[contexts.prod]  # the real one
url = "redis://db1"  # since 2024
queue = "jobs"

# For trying out.
[contexts.dev]
url = "local:"
"""


@pytest.fixture
def written(path: Path) -> Path:
    return write(path, WRITTEN, 0o644)


def test_a_new_file_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "rwq" / "config.toml"
    set_context(path, "a", {"url": "redis://a"}, frozenset())
    assert path.read_text() == '[contexts.a]\nurl = "redis://a"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["config.toml"]


def test_comments_and_order_stay(written: Path) -> None:
    set_context(written, "prod", {"queue": "mails", "read_only": True}, frozenset())
    use_context(written, "prod")
    assert written.read_text() == WRITTEN.replace(
        'queue = "jobs"\n', 'queue = "mails"\nread_only = true\n'
    ).replace("touch prod.\n\n", 'touch prod.\ncurrent = "prod"\n\n')
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_use_keeps_the_previous_one(written: Path) -> None:
    names = [use_context(written, name).current for name in ("prod", "dev", "-", "-", "dev")]
    assert names == ["prod", "dev", "prod", "dev", "dev"]
    assert read_contexts(written).previous == "prod"


def test_a_link_stays_a_link(tmp_path: Path, written: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(written)
    use_context(link, "prod")
    assert link.is_symlink()
    assert read_contexts(written).current == "prod"


def test_two_writers_at_once_lose_nothing(path: Path) -> None:
    names = [f"c{number}" for number in range(12)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: set_context(path, n, {"url": f"redis://{n}"}, frozenset()), names))
    assert sorted(read_contexts(path).by_name) == sorted(names)
