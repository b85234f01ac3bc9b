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
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.values import parse_regex
from rwq_cli.output.json_text import Path, Scanner, document_of, found_at, string_of

_OPERATOR = re.compile(r"==|!=|<=|>=|[=<>~]")
_VALUE = re.compile(r"[^\s\"',=!<>~][^\s\"',]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    **dict.fromkeys(("=", "==", "!="), operator.eq),
}
# Integers of up to this many digits are compared as such, which takes a fraction of the time.
_DIGITS = 18

# True if a value passes: its JSON text, or None if there is none.
Test = Callable[[bytes | None], bool]


class Condition(NamedTuple):
    """A condition on one value: its path, and the test that it must pass."""

    path: Path
    test: Test


def all_of(conditions: Iterable[Condition]) -> Callable[[bytes], bool]:
    conditions = list(conditions)

    def holds(data: bytes) -> bool:
        try:
            root = document_of(data)
            return all(condition.test(found_at(root, condition.path)) for condition in conditions)
        except (ValueError, RecursionError):
            return False

    return holds


def parse_condition(text: str) -> Condition:
    scanner = Scanner(text, "--where")
    scanner.skip_blanks()
    is_negated = scanner.take("!")
    path = scanner.path()
    scanner.skip_blanks()
    found = _OPERATOR.match(text, scanner.at)
    if found is None:
        scanner.expect_end(
            "an operator is missing: = != < <= > >= ~",
            "quote a key that holds other characters than letters, digits and _-$@/",
        )
        # As in jq's `select`.
        return Condition(path, lambda text: (text in (None, b"null", b"false")) is is_negated)
    if is_negated:
        scanner.fail("a condition with ! has no operator", "not equal is !=")
    scanner.at = found.end()
    scanner.skip_blanks()
    test = _matches(scanner) if found[0] == "~" else _compares(scanner, found[0])
    return Condition(path, (lambda text: not test(text)) if found[0] == "!=" else test)


def _matches(scanner: Scanner) -> Test:
    """Look for a regular expression in a string, or in a number as it is written."""
    start, expression = scanner.at, scanner.quoted()
    is_quoted = expression is not None
    if expression is None:
        expression = scanner.text[start:].rstrip()
        if not expression:
            scanner.fail("a regular expression is missing")
        scanner.at = len(scanner.text)
    scanner.expect_end("the quoted text ends before this")
    try:
        regex = parse_regex(expression, "--where")
    except InvalidArgument as error:
        at = 0 if is_quoted else getattr(error.__cause__, "pos", None) or 0
        reason = getattr(error.__cause__, "msg", None)
        message = error.message.removeprefix("--where is ")
        if reason is not None:
            message = f"not a regular expression: {reason}"
        scanner.fail(message, at=start + at)

    def test(text: bytes | None) -> bool:
        if text is None or text[:1] not in b'"-0123456789':
            return False
        return regex.search(string_of(text) if text[:1] == b'"' else text.decode()) is not None

    return test


def _compares(scanner: Scanner, symbol: str) -> Test:
    """Compare a string with any value, and a number with a number."""
    start, quoted = scanner.at, scanner.quoted()
    value = quoted
    if value is None:
        if scanner.at == len(scanner.text):
            scanner.fail("a value is missing", 'the empty string is ""')
        value = scanner.match(
            _VALUE,
            "a value cannot begin with this",
            "the operators are = != < <= > >= ~; quote a value that begins with one",
        )
    scanner.expect_end(
        "the value ends before this",
        "quote a value with blanks, commas or quotes; several conditions are several --where",
    )
    number = _number(value) if quoted is None else None
    if quoted is None and number is None and _NUMBER.fullmatch(value):
        scanner.fail("the exponent of this number is too large", at=start)
    compare = _COMPARE[symbol]
    # Unless it is quoted, what is equal may also be true, false or null, which is what is missing.
    word = value.encode() if compare is operator.eq and quoted is None else None

    def test(text: bytes | None) -> bool:
        if text is None or text == word:
            return word == (text or b"null")
        if text[:1] == b'"':
            return (number is None or compare is operator.eq) and compare(string_of(text), value)
        found = None if number is None else _number(text.decode())
        return found is not None and compare(found, number)

    return test


def _number(text: str) -> int | Decimal | None:
    """A number with every digit; None for other text, or for such an exponent."""
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    try:
        number = Decimal(text) if _NUMBER.fullmatch(text) else None
    except ArithmeticError:
        return None
    if number is None or number.adjusted() >= _DIGITS or number != int(number):
        return number
    return int(number)
