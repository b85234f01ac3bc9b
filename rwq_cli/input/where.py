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
from typing import Any, NoReturn

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
from rwq_cli.input.regex import compile_regex
from rwq_cli.output.json_text import string_of

_KEY = re.compile(r"(?:[\w$@/-]|[^\x00-\x7f\s])+")
_INDEX = re.compile(r"[0-9]+")
_OPERATOR = re.compile(r"==|!=|<=|>=|[=<>~]")
_VALUE = re.compile(r"[^\s\"',=!<>~][^\s\"',]*")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN_STRING = re.compile(r"'([^']*)'", re.DOTALL)

# How many characters of an expression an error shows.
_SHOWN = 30
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadExpression(InvalidArgument):
    """An expression that cannot be parsed; the message says where.

    Args:
        text: The expression.
        at: Where it cannot be parsed: an index of the text, or its length for the end.
        message: What is wrong.
        hint: What to do instead.
    """

    def __init__(self, text: str, at: int, message: str, hint: str | None = None) -> None:
        rest = text[at : at + _SHOWN] + ("…" if at + _SHOWN < len(text) else "")
        where = repr(rest) if rest else f"the end of {_end(text)!r}"
        super().__init__(f"--where, column {at + 1}, at {where}: {message}", hint)


def _end(text: str) -> str:
    return text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"


def parse_condition(text: str) -> Condition:
    """The condition of an expression.

    Raises:
        BadExpression: The text is not a valid condition.
    """
    return _Parser(text).condition()


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def condition(self) -> Condition:
        """The whole expression."""
        for at, character in enumerate(self._text):
            if "\ud800" <= character <= "\udfff":
                self._fail("this is not UTF-8, as JSON is", at=at)
        self._skip_blanks()
        is_negated = self._take("!")
        path = self._path()
        self._skip_blanks()
        found = _OPERATOR.match(self._text, self._at)
        if found is None:
            self._expect_end(
                "an operator is missing: = != < <= > >= ~",
                "quote a key that holds other characters than letters, digits and _-$@/",
            )
            return Condition(path, opposite(is_true) if is_negated else is_true)
        if is_negated:
            self._fail("a condition with ! has no operator", "not equal is !=")
        self._at = found.end()
        self._skip_blanks()
        return Condition(path, self._test(found[0]))

    def _path(self) -> list[str | int]:
        steps: list[str | int] = []
        is_dotted = self._take(".")
        if is_dotted and self._is_at(" =!<>~", at_end=True):
            return steps
        while is_dotted or not steps or self._is_at("["):
            steps.append(self._in_brackets() if self._take("[") else self._key())
            is_dotted = self._take(".")
        return steps

    def _key(self) -> str:
        if (quoted := self._quoted()) is not None:
            return quoted
        return self._match(_KEY, "a key is missing", "a path is like tenant.id or items[0].sku")

    def _in_brackets(self) -> str | int:
        step: str | int | None = self._quoted()
        if step is None:
            # Longer than any array.
            step = int(self._match(_INDEX, "an index or a quoted key is missing")[:18])
        if not self._take("]"):
            self._fail("a ] is missing")
        return step

    def _test(self, symbol: str) -> Test:
        start, quoted = self._at, self._quoted()
        is_quoted = quoted is not None
        if symbol == "~":
            regex = self._rest() if quoted is None else quoted
            self._expect_end("the quoted text ends before this")
            try:
                return matches(compile_regex(regex))
            except (re.error, OverflowError, RecursionError) as error:
                at = start if is_quoted else start + (getattr(error, "pos", None) or 0)
                self._fail(f"not a regular expression: {getattr(error, 'msg', error)}", at=at)
        value = self._value() if quoted is None else quoted
        self._expect_end(
            "the value ends before this",
            "quote a value with blanks, commas or quotes; several conditions are several --where",
        )
        try:
            if symbol in _ORDER:
                return compares(_ORDER[symbol], value, is_quoted=is_quoted)
            is_equal = equals(value, is_quoted=is_quoted)
        except OverflowError:
            self._fail("the exponent of this number is too large", at=start)
        return opposite(is_equal) if symbol == "!=" else is_equal

    def _value(self) -> str:
        if self._at == len(self._text):
            self._fail("a value is missing", 'the empty string is ""')
        return self._match(
            _VALUE,
            "a value cannot begin with this",
            "the operators are = != < <= > >= ~; quote a value that begins with one",
        )

    def _rest(self) -> str:
        rest = self._text[self._at :].rstrip()
        if not rest:
            self._fail("a regular expression is missing")
        self._at = len(self._text)
        return rest

    def _quoted(self) -> str | None:
        """A string in quotes: double quotes as in JSON, single quotes without escapes."""
        start = self._at
        if not self._is_at("\"'"):
            return None
        is_json = self._is_at('"')
        found = (_JSON_STRING if is_json else _PLAIN_STRING).match(self._text, start)
        if found is None:
            self._fail("this quote is not closed")
        self._at = found.end()
        if not is_json:
            return found[1]
        try:
            return string_of(found[0].encode())
        except ValueError:
            self._fail("not a JSON string", "in single quotes, \\ is a plain character", at=start)

    def _match(self, pattern: "re.Pattern[str]", message: str, hint: str | None = None) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            self._fail(message, hint)
        self._at = found.end()
        return found[0]

    def _expect_end(self, message: str, hint: str | None = None) -> None:
        self._skip_blanks()
        if self._at < len(self._text):
            self._fail(message, hint)

    def _is_at(self, characters: str, *, at_end: bool = False) -> bool:
        if self._at == len(self._text):
            return at_end
        return self._text[self._at] in characters

    def _take(self, character: str) -> bool:
        is_there = self._is_at(character)
        self._at += is_there
        return is_there

    def _skip_blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _fail(self, message: str, hint: str | None = None, *, at: int | None = None) -> NoReturn:
        raise BadExpression(self._text, self._at if at is None else at, message, hint)
