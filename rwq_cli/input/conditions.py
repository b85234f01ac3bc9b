"""Conditions on values inside JSON data.

Only the values that the conditions name are decoded; the rest of the data is checked for syntax.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import Raw, ValidationError, defstruct
from msgspec.json import Decoder

from rwq_cli.output.json_text import check_utf8, string_of, value_of

# Arrays are read up to the requested index, by a type that has a field for each element.
INDEX_MAX = 999

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

_fields = Decoder(dict[str, Raw]).decode

# Whether a value passes: its JSON text, or None if there is none.
Test = Callable[[bytes | None], bool]


@dataclass(frozen=True)
class Condition:
    """A condition on one value.

    Attributes:
        path: Keys and indexes, from the outside in; empty for all of the data.
        test: What the value there must pass.
    """

    path: Sequence[str | int]
    test: Test


def all_of(conditions: Iterable[Condition]) -> Callable[[bytes], bool]:
    """Decides whether data is JSON and meets all conditions."""
    root = _Node()
    for condition in conditions:
        root.at(condition.path).tests.append(condition.test)

    def holds(data: bytes) -> bool:
        try:
            check_utf8(data)
            return root.holds(data)
        except (ValueError, RecursionError):
            return False

    return holds


@dataclass
class _Node:
    """The conditions on a value, and on the values inside."""

    tests: list[Test] = field(default_factory=list)
    named: "dict[str, _Node]" = field(default_factory=dict)
    indexed: "dict[int, _Node]" = field(default_factory=dict)
    _elements: Callable[[bytes | Raw], Any] | None = None

    def at(self, path: Sequence[str | int]) -> "_Node":
        """The node of a value inside."""
        node = self
        for step in path:
            inner: dict[Any, _Node] = node.named if isinstance(step, str) else node.indexed
            node = inner.setdefault(step, _Node())
        return node

    def holds(self, value: bytes | Raw | None) -> bool:
        """Whether the conditions are met; `ValueError` for what is not JSON."""
        if self.tests:
            text = None if value is None else bytes(value_of(value))
            if not all(test(text) for test in self.tests):
                return False
        if self.named:
            fields = _decoded(_fields, value) or {}
            if not all(node.holds(fields.get(name)) for name, node in self.named.items()):
                return False
        if self.indexed:
            elements = _decoded(self._decode_elements, value)
            return all(
                node.holds(getattr(elements, f"at_{index}", None))
                for index, node in self.indexed.items()
            )
        return True

    def _decode_elements(self, value: bytes | Raw) -> Any:
        if self._elements is None:
            fields = [(f"at_{index}", Raw, None) for index in range(max(self.indexed) + 1)]
            self._elements = Decoder(defstruct("Elements", fields, array_like=True)).decode
        return self._elements(value)


def _decoded(decode: Callable[[bytes | Raw], Any], value: bytes | Raw | None) -> Any:
    """A decoded value; None for none, or for one of another type."""
    if value is None:
        return None
    try:
        return decode(value)
    except ValidationError:
        # It is not known yet whether it is JSON.
        value_of(value)
        return None


def exists(text: bytes | None) -> bool:
    """Whether there is a value other than null and false, as jq's `select` has it."""
    return text not in (None, b"null", b"false")


def opposite(test: Test) -> Test:
    """The opposite test; it also passes a missing value."""
    return lambda text: not test(text)


def equals(value: str, *, is_quoted: bool) -> Test:
    """The test for a string; unless quoted, also for a number, true, false or null.

    What is missing is null, as in jq.
    """
    number = None if is_quoted else _number(value)
    word = None if is_quoted else value.encode()

    def test(text: bytes | None) -> bool:
        if text is None:
            return word == b"null"
        if text[:1] == b'"':
            return string_of(text) == value
        return text == word or (number is not None and _number(text.decode()) == number)

    return test


def compares(compare: Callable[[Any, Any], bool], value: str, *, is_quoted: bool) -> Test:
    """The test that compares numbers with a number, or strings with any other value."""
    number = None if is_quoted else _number(value)

    def test(text: bytes | None) -> bool:
        if text is None:
            return False
        if number is None:
            return text[:1] == b'"' and compare(string_of(text), value)
        found = _number(text.decode())
        return found is not None and compare(found, number)

    return test


def matches(regex: "re.Pattern[str]") -> Test:
    """The test that looks for a regular expression in a string, or in a number as it is written."""

    def test(text: bytes | None) -> bool:
        if text is None or text[:1] not in b'"-0123456789':
            return False
        found = string_of(text) if text[:1] == b'"' else text.decode()
        return regex.search(found) is not None

    return test


def _number(text: str) -> Decimal | None:
    """A number of any length; None for other text."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except ArithmeticError:
        # The exponent has about twenty digits.
        return None
