"""What options ask for where kinds/transcripts has no line that shows it; without a server."""

import io
from pathlib import Path
from typing import Any

import pytest

from rwq_cli.cli.settings import Settings
from rwq_cli.commands import undo
from rwq_cli.commands.export import Exported
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment


def settings(*, variables: dict[str, str] | None = None, **options: Any) -> Settings:
    streams = (io.BytesIO(), io.BytesIO(), io.BytesIO())
    return Settings(Environment(variables or {}, *streams), options)


HERE, THERE = "redis://here:6379/0", "redis://there:6379/0"


@pytest.mark.parametrize(
    ("given", "options", "queue", "servers", "has_unreadable"),
    [
        # What is restored; RWQ_QUEUE and the server in use choose, too.
        ({}, {}, b"jobs", [HERE], True),
        ({"queue": ["q"]}, {}, b"q", [HERE], True),
        ({}, {"anywhere": True}, None, [HERE, THERE], True),
        ({"queue": ["q"]}, {"anywhere": True}, b"q", [HERE, THERE], True),
        # What is listed or deleted; only options choose.
        ({}, {"list_": True}, None, [HERE, THERE], True),
        ({"queue": ["q"]}, {"list_": True}, b"q", [HERE, THERE], False),
        ({"url": HERE}, {"prune": True, "older_than_s": 60.0}, None, [HERE], False),
    ],
)
def test_undo_files_are_those_of(
    given: Any, options: Any, queue: bytes | None, servers: list[str], has_unreadable: bool
) -> None:
    variables = {"RWQ_URL": HERE, "RWQ_QUEUE": "jobs"}
    plan = undo.make_plan(undo.UndoOptions(settings(variables=variables, **given), **options))
    assert (plan.path, plan.queue, plan.has_unreadable) == (None, queue, has_unreadable)
    is_here = plan.is_here or (lambda _: True)
    assert [url for url in (HERE, THERE) if is_here(url)] == servers
    assert (plan.until_ms < float("inf")) == ("older_than_s" in options)


def test_the_undo_file_that_is_restored_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder, here = tmp_path / "undo", Path("2.jsonl")
    folder.mkdir()
    (folder / "1.jsonl.undone").touch()
    options = undo.UndoOptions(settings(variables={"RWQ_UNDO_DIR": str(folder)}))

    def path_of(file: str) -> Path | None:
        return undo.make_plan(options._replace(file=file)).path

    assert path_of("1") == folder / "1.jsonl.undone"
    assert path_of("2.jsonl") == folder / "2.jsonl"
    here.touch()
    assert path_of("2.jsonl") == here
    assert path_of("./3.jsonl") == Path("./3.jsonl")
    with pytest.raises(InvalidArgument):
        path_of("2")


@pytest.mark.parametrize(
    ("exported", "words", "status"),
    [
        (Exported(0, 3), "nothing exported, results 3 from jobs", 0),
        (
            Exported(1, 0, requested=2, wrong_types=1, stray_leases=1),
            "exported 1 from jobs; skipped 1 of the wrong type, 1 stray leases",
            3,
        ),
        (Exported(1, 0, left_out=1), "exported 1 from jobs", 3),
    ],
)
def test_an_export_says(exported: Exported, words: str, status: int) -> None:
    assert (exported.in_words(" from jobs"), exported.status) == (words, status)
