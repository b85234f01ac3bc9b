"""Lines for programs."""

import pytest

from rwq_cli.output.machine import plain


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), (False, "false"), (0, "0"), (1.5, "1.5"), ("a\tb", "a\\tb")],
)
def test_values_in_plain_lines(value: object, text: str) -> None:
    assert plain(value) == text
