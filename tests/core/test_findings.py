"""The codes: what each weighs, and when a finding is open."""

import pytest

from rwq_cli.core import Code, Finding, Severity, State


def test_states_that_are_broken_have_their_own_names() -> None:
    states = {state.value for state in State}
    assert states & {code.value for code in Code} == {
        *("held", "abandoned", "orphaned", "unlisted", "due", "duplicated", "ghost"),
        *("stray-lease", "wrong-type"),
    }


def test_every_weight_is_there() -> None:
    assert {code.severity for code in Code} == set(Severity)


@pytest.mark.parametrize(
    ("code", "left", "is_open"),
    [
        (Code.HELD, 1, True),
        (Code.ABANDONED, 1, True),
        (Code.ABANDONED, 0, False),
        (Code.NO_HASH_TAG, 1, False),
    ],
)
def test_is_open(code: Code, left: int, is_open: bool) -> None:
    assert Finding(code, 1, (), False, 1 - left, left).is_open is is_open
