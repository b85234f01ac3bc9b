"""What the options of a command ask for, without a server."""

import io
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rwq_cli.cli.choosing import Choice
from rwq_cli.cli.options import Duration
from rwq_cli.cli.settings import Settings
from rwq_cli.commands import add, clean, ls, undo
from rwq_cli.commands.complete import Completion
from rwq_cli.commands.doctor import DoctorOptions
from rwq_cli.commands.edit import _loss
from rwq_cli.commands.export import Exported
from rwq_cli.commands.lease import Leasing
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.selection import Selection
from rwq_cli.core.items.restore import OnConflict
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Outcome, State, Status
from rwq_cli.core.repair.clean import CleanAction, Repair
from rwq_cli.core.repair.findings import Code, Severity
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.environment import Environment


def settings(*, variables: dict[str, str] | None = None, **options: Any) -> Settings:
    streams = (io.BytesIO(), io.BytesIO(), io.BytesIO())
    return Settings(Environment(variables or {}, *streams), options)


NOTES = frozenset(code for code in Code if code.severity is Severity.NOTE)


@pytest.mark.parametrize(
    ("only", "skip", "codes", "is_all"),
    [
        (None, None, frozenset(Code), True),
        (None, NOTES, frozenset(Code) - NOTES, True),
        (None, {Code.HELD}, frozenset(Code) - {Code.HELD}, False),
        ({Code.HELD, Code.DUE}, {Code.DUE}, {Code.HELD}, False),
    ],
)
def test_the_doctor_looks_for(only: Any, skip: Any, codes: Any, is_all: bool) -> None:
    options = DoctorOptions(settings(), only=only, skip=skip)
    assert (options.codes, options.is_all) == (codes, is_all)


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"dry_run": True}, "--fix"), ({"only": NOTES, "skip": NOTES}, "leave no findings")],
)
def test_the_doctor_refuses(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidArgument, match=hint):
        DoctorOptions(settings(), **options).check()


@pytest.mark.parametrize(
    ("options", "wanted", "wait_s"),
    [
        ({}, 1, 0.0),
        ({"number": 5, "wait": True}, 5, float("inf")),
        ({"ids": [b"a", b"b"]}, 2, 0.0),
        ({"wait": True, "timeout_s": 2.0}, 1, 2.0),
    ],
)
def test_a_lease_is_of(options: dict[str, Any], wanted: int, wait_s: float) -> None:
    leasing = Leasing(settings(), **options)
    assert (leasing.wanted, leasing.wait_s) == (wanted, wait_s)


def test_ids_of_several_queues_are_not_leased() -> None:
    Leasing(settings(queue=["a", "a"], output="ids")).check()
    Leasing(settings(queue=["a", "b"])).check()
    with pytest.raises(InvalidArgument, match="several queues"):
        Leasing(settings(queue=["a", "b"], output="ids")).check()


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        (b"{}", b"[1]", None),
        (b"text", b"other", None),
        (b"text", b"", "nothing"),
        (b"", b"", None),
        (b"{}", b"{", "not JSON"),
    ],
)
def test_an_edit_asks_before_it_spoils(old: bytes, new: bytes, question: str | None) -> None:
    item = ItemSnapshot(b"a", old, State.WAITING, None)
    loss = _loss(item, new, allows_empty=False)
    assert (loss is None) if question is None else (question in (loss or ""))
    assert not (loss and _loss(item, b"", allows_empty=True))


@pytest.mark.parametrize(
    ("which", "selection", "shown", "noun", "places"),
    [
        (None, {}, "waiting", "waiting items", ["main"]),
        (None, {"reason_glob": b"*"}, "buried", "such buried items", ["buried"]),
        (None, {"states": frozenset({State.LEASED})}, None, "such items", ["processing"]),
        ("leased", {}, "leased", "leased items", ["processing"]),
        ("all", {}, "all", "items", ["main", "processing", "delayed", "buried"]),
    ],
)
def test_a_listing_is_of(
    which: str | None, selection: Any, shown: str | None, noun: str, places: list[str]
) -> None:
    scope = ls.make_scope(which and ls.Which(which), Selection(**selection), deep=False)
    assert (scope.which, scope.noun) == (shown, noun)
    assert [name for name in scope.source._fields if getattr(scope.source, name)] == places


def test_a_listing_refuses_what_it_cannot_find() -> None:
    for which, states, deep in (("leased", {State.BURIED}, False), ("waiting", set(), True)):
        with pytest.raises(InvalidArgument):
            ls.make_scope(ls.Which(which), Selection(frozenset(states) or None), deep=deep)


LIGHT = clean.CleanOptions(settings(), every=Duration(30), bury_after=2)


def test_pruned_entries_are_news_of_one_clean_only() -> None:
    assert clean.Cleaner.kind.news - clean.RoundsCleaner.kind.news == {"pruned"}


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, ["rwq: a: buried: abandoned again, after 2 returns"]),
        ({"dry_run": True}, []),
        ({"settings": settings(output="jsonl")}, []),
    ],
)
def test_a_clean_names_to_people_what_it_buried(more: dict[str, Any], lines: list[str]) -> None:
    action = CleanAction(b"a", Repair.BURIED, State.ABANDONED, "processing")
    assert LIGHT._replace(**more).burial_notes([action]) == lines


def test_rounds_of_cleans_are_no_json_document() -> None:
    endless = LIGHT._replace(settings=settings(output="json"))
    with pytest.raises(InvalidArgument, match="--every"):
        clean.RoundsCleaner(endless, Duration(30), is_deep=False)


@pytest.mark.parametrize(
    ("on_conflict", "more", "asks"),
    [
        (OnConflict.REPLACE, {}, True),
        (OnConflict.REPLACE, {"yes": True}, False),
        (OnConflict.REPLACE, {"dry_run": True}, False),
        (OnConflict.SKIP, {}, False),
    ],
)
def test_an_import_asks_before_it_replaces(
    on_conflict: OnConflict, more: dict[str, Any], asks: bool
) -> None:
    module = import_module("rwq_cli.commands.import")
    options = module.ImportOptions(settings(), __file__, on_conflict, **more)
    assert options.asks() == asks
    if asks:
        with pytest.raises(InvalidArgument, match="beforehand"):
            options._replace(file="-").asks()


@pytest.mark.parametrize(
    ("data", "files", "sources"),
    [
        (["a", "b"], [], (["a", "b"], ())),
        (["-"], ["f"], ((), ["f", "-"])),
        ((), ["f"], ((), ["f"])),
        (["a", "-"], [], None),
        (["a"], ["f"], None),
    ],
)
def test_items_are_added_from(data: Any, files: Any, sources: Any) -> None:
    adding = add.Adding(settings(), data, files)
    if sources is not None:
        assert adding.sources() == sources
        return
    with pytest.raises(InvalidArgument):
        adding.sources()


@pytest.mark.parametrize(
    ("only_own", "force", "holder", "is_other"),
    [
        (False, False, None, True),
        (False, False, BURIED_GUARD, True),
        (False, False, b"worker", False),
        (False, True, b"worker", True),
        (True, False, None, False),
    ],
)
def test_what_no_owner_holds_is_completed_too(
    only_own: bool, force: bool, holder: bytes | None, is_other: bool
) -> None:
    plan = Completion(Choice(settings(), None, Selection()), [b"me"], only_own, force)
    assert plan.is_other(Outcome(b"a", Status.NOT_OWNER, holder)) == is_other
    assert not plan.is_other(Outcome(b"a", Status.COMPLETED))


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
    for file in ("2", ""):
        with pytest.raises(InvalidArgument):
            path_of(file)
    with pytest.raises(InvalidArgument, match="no file"):
        undo.make_plan(options._replace(file="1", list_=True))
    with pytest.raises(InvalidArgument, match="--older-than"):
        undo.make_plan(options._replace(older_than_s=Duration(60)))


@pytest.mark.parametrize(
    ("exported", "words", "status"),
    [
        (Exported(2, 0), "exported 2 from jobs", 0),
        (Exported(0, 0), "nothing exported from jobs", 0),
        (Exported(0, 3), "nothing exported, results 3 from jobs", 0),
        (Exported(1, 0, requested=2), "exported 1, missing 1 from jobs", 3),
        (Exported(0, 0, requested=1, without_data=1), "nothing exported, missing 1 from jobs", 1),
        (
            Exported(2, 1, without_data=1),
            "exported 2, results 1 from jobs; skipped 1 without data",
            0,
        ),
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
