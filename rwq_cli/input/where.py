"""Parsing `--where`: a condition on a value inside JSON data.

size>100            a number            kind="img"       a string
tenant.id!=3        not equal           items[0].sku=7   an element of an array
kind~^img           a regular expression is found in it
error               it exists, and is neither null nor false
!error              the opposite
"""

import operator
import re
from collections.abc import Callable
from typing import Any

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.conditions import (
    Condition,
    Test,
    compares,
    equals,
    is_true,
    matches,
    opposite,
)
from rwq_cli.input.regex import Regex
from rwq_cli.output.json_text import Scanner

_OPERATOR = re.compile(r"==|!=|<=|>=|[=<>~]")
_VALUE = re.compile(r"[^\s\"',=!<>~][^\s\"',]*")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def parse_condition(text: str) -> Condition:
    """The condition of an expression; a `BadExpression` says where the text is none."""
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
        return Condition(path, opposite(is_true) if is_negated else is_true)
    if is_negated:
        scanner.fail("a condition with ! has no operator", "not equal is !=")
    scanner.at = found.end()
    scanner.skip_blanks()
    return Condition(path, _test(scanner, found[0]))


def _test(scanner: Scanner, symbol: str) -> Test:
    """The test that follows an operator."""
    start, quoted = scanner.at, scanner.quoted()
    is_quoted = quoted is not None
    if symbol == "~":
        text = quoted
        if text is None:
            text = scanner.text[start:].rstrip()
            if not text:
                scanner.fail("a regular expression is missing")
            scanner.at = len(scanner.text)
        scanner.expect_end("the quoted text ends before this")
        try:
            return matches(Regex(text, "--where"))
        except InvalidArgument as error:
            at = 0 if is_quoted else getattr(error.__cause__, "pos", None) or 0
            reason = getattr(error.__cause__, "msg", None)
            message = error.message.removeprefix("--where is ")
            if reason is not None:
                message = f"not a regular expression: {reason}"
            scanner.fail(message, at=start + at)
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
    try:
        if symbol in _ORDER:
            return compares(_ORDER[symbol], value, is_quoted=is_quoted)
        is_equal = equals(value, is_quoted=is_quoted)
    except OverflowError:
        scanner.fail("the exponent of this number is too large", at=start)
    return opposite(is_equal) if symbol == "!=" else is_equal
