"""Conditions on values inside JSON data.

Only the values on the way to those that the conditions name are decoded; the rest of the data is
checked for syntax.
"""

import re
from collections.abc import Callable, Iterable
from decimal import MIN_ETINY, Decimal
from typing import Any, NamedTuple

from rwq_cli.input.regex import Regex
from rwq_cli.output.json_text import Path, document_of, found_at, string_of

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

# Integers of up to this many digits are read as integers, longer ones as decimals.
_DIGITS = 18
# Smaller numbers are rounded to it.
_SMALLEST = Decimal(f"1e{MIN_ETINY}")

# True if a value passes: its JSON text, or None if there is none.
Test = Callable[[bytes | None], bool]


class Condition(NamedTuple):
    """A condition on one value: its path, and the test that it must pass."""

    path: Path
    test: Test


def all_of(conditions: Iterable[Condition]) -> Callable[[bytes], bool]:
    """Decides whether data is JSON and meets all conditions."""
    conditions = list(conditions)

    def holds(data: bytes) -> bool:
        try:
            root = document_of(data)
            return all(condition.test(found_at(root, condition.path)) for condition in conditions)
        except (ValueError, RecursionError):
            return False

    return holds


def is_true(text: bytes | None) -> bool:
    """True if there is a value other than null and false, as in jq's `select`."""
    return text not in (None, b"null", b"false")


def opposite(test: Test) -> Test:
    """The opposite test; it also passes a missing value."""
    return lambda text: not test(text)


def equals(value: str, *, is_quoted: bool) -> Test:
    """The test for a string; unless quoted, also for a number, true, false or null.

    What is missing is null, as in jq. `OverflowError` is for an exponent that is too large.
    """
    number = None if is_quoted else _number(value)
    word = None if is_quoted else value.encode()

    def test(text: bytes | None) -> bool:
        if text is None:
            return word == b"null"
        if text[:1] == b'"':
            return string_of(text) == value
        return text == word or (number is not None and _number_in_data(text) == number)

    return test


def compares(compare: Callable[[Any, Any], bool], value: str, *, is_quoted: bool) -> Test:
    """The test that compares numbers with a number, or strings with any value; see `equals`."""
    number = None if is_quoted else _number(value)

    def test(text: bytes | None) -> bool:
        if text is None:
            return False
        if number is None:
            return text[:1] == b'"' and compare(string_of(text), value)
        found = _number_in_data(text)
        return found is not None and compare(found, number)

    return test


def matches(regex: Regex[str]) -> Test:
    """The test that looks for a regular expression in a string, or in a number as it is written."""

    def test(text: bytes | None) -> bool:
        if text is None or text[:1] not in b'"-0123456789':
            return False
        found = string_of(text) if text[:1] == b'"' else text.decode()
        return regex.search(found) is not None

    return test


def _number(text: str) -> int | Decimal | None:
    """A number of any length; None for other text; `OverflowError` for such an exponent."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:
        raise OverflowError(text)
    # Integers are compared with integers in a fraction of the time.
    return int(number) if number.adjusted() < _DIGITS and number == int(number) else number


def _number_in_data(text: bytes) -> int | Decimal | None:
    """The same; a number with such an exponent lies beyond every one that `_number` returns."""
    if text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    try:
        return _number(text.decode())
    except OverflowError:
        mantissa, _, exponent = text.decode().lower().partition("e")
        sign = Decimal(mantissa)
        if not sign:
            return sign
        return (_SMALLEST if exponent.startswith("-") else Decimal("inf")).copy_sign(sign)
