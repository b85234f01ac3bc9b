"""Regular expressions: whatever is typed is an answer or an error, in bounded time."""

import time
from collections import deque
from itertools import repeat

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


@pytest.mark.parametrize("text", [b"a" * 40 + b"b", b"a" * 20 + b"b"])
def test_matches_end_in_bounded_time(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    """One that takes for ever, and many that take a moment each."""
    monkeypatch.setattr(regex, "_SECONDS", 0.2)
    slow = Regex(b"(a+)+$", "--match")
    began_s = time.process_time()
    with pytest.raises(InvalidArgument, match="--match takes too long"):
        deque(map(slow.search, repeat(text)), 0)
    assert time.process_time() - began_s < 3
    # The clock runs on, and ends nothing else.
    while time.process_time() - began_s < 1:
        assert slow.search(b"aaa")
