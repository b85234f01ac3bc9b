"""The codes: what each weighs."""

from rwq_cli.core import Code, Severity, State


def test_states_that_are_broken_have_their_own_names() -> None:
    states = {state.value for state in State}
    assert states & {code.value for code in Code} == {
        *("held", "abandoned", "orphaned", "unlisted", "due", "duplicated", "ghost"),
        *("stray-lease", "wrong-type"),
    }


def test_every_severity_has_a_code() -> None:
    assert {code.severity for code in Code} == set(Severity)
