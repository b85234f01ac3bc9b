"""Regular expressions: whatever is typed is an answer or an error."""

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.values import parse_regex


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 5000, "nested too deeply"),
        ("[", "unterminated character set"),
    ],
)
def test_what_is_no_expression_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^--match is not a regular expression: {reason}"):
        parse_regex(text, "--match")
