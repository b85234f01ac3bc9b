"""Parsing `--where`: a condition on a value inside JSON data.

size>100            a number            kind="img"       a string
tenant.id!=3        not equal           items[0].sku=7   an element of an array
kind~^img           a regular expression is found in it
error               it exists, and is neither null nor false
!error              the opposite

Only the values on the way to those that the conditions name are decoded; the rest of the data is
checked for syntax.
"""

import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.values import parse_regex
from rwq_cli.output.json_text import (
    PATH,
    QUOTED,
    Path,
    document_of,
    is_utf8,
    parse_path,
    string_of,
    unquoted,
    value_in,
)

_CONDITION = re.compile(
    rf"\s*(!?)({PATH.pattern})\s*(?:(==|!=|<=|>=|[=<>~])\s*(.*?))?\s*", re.DOTALL
)
_QUOTED = re.compile(QUOTED, re.DOTALL)
_VALUE = re.compile(r"[^\s\"',=!<>~][^\s\"',]*")
_FORMS = (
    "write it like tenant.id=3, size>100, kind~^img, error or !error, each in a --where of its "
    "own; what holds other characters is quoted: 'odd key'=\"a b\""
)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    **dict.fromkeys(("=", "==", "!="), operator.eq),
}
# Takes a value's JSON text, or None if there is no value; returns True if it passes.
Test = Callable[[bytes | None], bool]


class Condition(NamedTuple):
    """A condition on one value: its path, as it is shown and in steps, the test to pass, and
    whether it asks for items without that path."""

    name: str
    path: Path
    test: Test
    is_negated: bool = False


class Conditions:
    """Conditions that data must meet, all of them, and a further test, such as a regex's `search`.

    Attributes:
        unseen: The paths that are wanted and none of the data had so far, by name; none before
            there is any.
    """

    def __init__(
        self, conditions: Sequence[Condition], test: Callable[[bytes], object] | None = None
    ) -> None:
        self._conditions, self._test = conditions, test
        self.unseen: dict[str, Path] = {}
        self._is_first = True

    def __call__(self, data: bytes) -> bool:
        if self._is_first:
            self._is_first = False
            wanted = (condition for condition in self._conditions if not condition.is_negated)
            self.unseen = {condition.name: condition.path for condition in wanted}
        try:
            root = document_of(data)
            for name, path in [*self.unseen.items()]:
                if value_in(root, path) is not None:
                    del self.unseen[name]
            if not all(
                condition.test(value_in(root, condition.path)) for condition in self._conditions
            ):
                return False
        except (ValueError, RecursionError):
            return False
        return self._test is None or bool(self._test(data))


def parse_condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text) if is_utf8(text) else None
    bad = InvalidArgument(f"--where cannot be {text!r}", _FORMS)
    if match is None:
        raise bad
    is_negated, name, symbol, value = bool(match[1]), match[2], match[3], match[4]
    path = parse_path(name)
    condition = partial(Condition, name if name[0] in ".[" else f".{name}", path)
    if symbol is None:
        # As in jq's `select`.
        return condition(lambda text: (text in (None, b"null", b"false")) is is_negated, is_negated)
    is_quoted = _QUOTED.fullmatch(value) is not None
    is_odd = value[:1] in "\"'" if symbol == "~" else not _VALUE.fullmatch(value)
    if is_negated or (is_odd and not is_quoted):
        raise bad
    if is_quoted:
        value = unquoted(value)
    if symbol == "~":
        return condition(_matches(parse_regex(value, "--where")))
    number = None if is_quoted else _number(value)
    if number is None and not is_quoted and _NUMBER.fullmatch(value):
        raise InvalidArgument(f"--where: the exponent of {value} is too large", "quote text")
    # Unquoted, it may also equal true, false or null, and null stands for a missing value, too.
    word = None if is_quoted or _COMPARE[symbol] is not operator.eq else value.encode()
    test = _compares(_COMPARE[symbol], value, number, word)
    return condition((lambda text: not test(text)) if symbol == "!=" else test)


def _matches(regex: "re.Pattern[str]") -> Test:
    """Look for a regular expression in a string, or in a number as it is written."""

    def test(text: bytes | None) -> bool:
        if text is None or text[:1] not in b'"-0123456789':
            return False
        return regex.search(string_of(text) if text[:1] == b'"' else text.decode()) is not None

    return test


def _compares(
    compare: Callable[[Any, Any], bool], value: str, number: Decimal | None, word: bytes | None
) -> Test:
    """Compare a string with any value, a number with a number; what equals `word` is equal, too."""

    def test(text: bytes | None) -> bool:
        if text is None or text == word:
            return word == (text or b"null")
        if text[:1] == b'"':
            return (number is None or compare is operator.eq) and compare(string_of(text), value)
        other = None if number is None else _number(text.decode())
        return other is not None and compare(other, number)

    return test


def _number(text: str) -> Decimal | None:
    """Parse a number with every digit; None for other text, or if the exponent is too large."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except ArithmeticError:
        return None
