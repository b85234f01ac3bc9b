"""Changing config.toml: comments stay, and nothing of another rwq is lost."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rwq_cli.contexts.editing import set_context, use_context
from rwq_cli.contexts.file import read_contexts

WRITTEN = """# Our servers. Ask Ann before you touch prod.

[contexts.prod]  # the real one
url = "redis://db1"  # since 2024
queue = "jobs"

# For trying out.
[contexts.dev]
url = "local:"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rwq" / "config.toml"


@pytest.fixture
def written(path: Path) -> Path:
    path.parent.mkdir()
    path.write_text(WRITTEN)
    return path


def test_a_new_file_is_for_its_user_alone(path: Path) -> None:
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
