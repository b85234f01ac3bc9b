"""What the options of a command ask for, without a server."""

import io
from typing import Any

import pytest

from rwq_cli.cli.settings import Settings
from rwq_cli.commands.doctor import make_plan
from rwq_cli.commands.edit import _loss
from rwq_cli.commands.lease import Leasing
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code, Severity
from rwq_cli.core.state.snapshots import ItemSnapshot
from rwq_cli.environment import Environment


def settings(**options: Any) -> Settings:
    return Settings(Environment({}, io.BytesIO(), io.BytesIO(), io.BytesIO()), options)


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
    plan = make_plan(fix=False, dry_run=False, grace_s=1.0, only=only, skip=skip)
    assert (plan.codes, plan.is_all) == (codes, is_all)


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"dry_run": True}, "--fix"), ({"only": NOTES, "skip": NOTES}, "leave no findings")],
)
def test_the_doctor_refuses(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidArgument, match=hint):
        make_plan(**{"fix": False, "dry_run": False, "grace_s": 1.0, **options})


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
