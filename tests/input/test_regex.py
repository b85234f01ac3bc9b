"""Regular expressions: whatever is typed is an answer or an error, in bounded time."""

import time

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input import regex
from rwq_cli.input.regex import Regex


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
        Regex(text, "--match")


def test_a_match_ends_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_SECONDS", 0)
    slow = Regex(b"(a+)+$", "--match")
    began_s = time.process_time()
    with pytest.raises(InvalidArgument, match="takes more than 0 s for 41 characters"):
        slow.search(b"a" * 40 + b"b")
    assert time.process_time() - began_s < 5
    # The clock runs on, and ends nothing else.
    while time.process_time() - began_s < 3:
        assert slow.search(b"aaa")
