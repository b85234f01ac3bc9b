"""Conditions on values inside JSON data.

Only the values that the conditions name are decoded; the rest of the data is checked for syntax.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import MIN_ETINY, Decimal
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple, cast

from msgspec import Raw, ValidationError, defstruct
from msgspec.json import Decoder

from rwq_cli.output.json_text import check_utf8, string_of, value_of

# Arrays are read up to the requested index, by a type that has a field for each element.
INDEX_MAX = 999

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

# Integers of up to this many digits are read as integers, longer ones as decimals.
_DIGITS = 18
# Smaller numbers are rounded to it.
_SMALLEST = Decimal(f"1e{MIN_ETINY}")

# Whether a value passes: its JSON text, or None if there is none.
Test = Callable[[bytes | None], bool]


class Condition(NamedTuple):
    """A condition on one value.

    Attributes:
        path: Keys and indexes, from the outside in; empty for all of the data.
        test: What the value there must pass.
    """

    path: Sequence[str | int]
    test: Test


def all_of(conditions: Iterable[Condition]) -> Callable[[bytes], bool]:
    """Decides whether data is JSON and meets all conditions."""
    root = _ValueTests()
    for condition in conditions:
        root.at(condition.path).tests.append(condition.test)
    passes = root.check(is_root=True)

    def holds(data: bytes) -> bool:
        try:
            check_utf8(data)
            return passes(data)
        except (ValueError, RecursionError):
            return False

    return holds


# Whether a value meets the conditions on it: its JSON text, or None if there is none. It raises
# `ValueError` for what is not JSON.
_Check = Callable[["bytes | Raw | None"], bool]


@dataclass
class _ValueTests:
    """The conditions on a value, and on the values inside."""

    tests: list[Test] = field(default_factory=list)
    named: "dict[str, _ValueTests]" = field(default_factory=dict)
    indexed: "dict[int, _ValueTests]" = field(default_factory=dict)

    def at(self, path: Sequence[str | int]) -> "_ValueTests":
        """The node of a value inside."""
        node = self
        for step in path:
            inner: dict[Any, _ValueTests] = node.named if isinstance(step, str) else node.indexed
            node = inner.setdefault(step, _ValueTests())
        return node

    def check(self, *, is_root: bool = False) -> _Check:
        """The check of a value; a root may have blanks around it."""
        checks = [_check_of_text(test, is_root=is_root) for test in self.tests]
        if self.named:
            checks.append(_check_inside(_fields_type(list(self.named)), self.named.values()))
        if self.indexed:
            checks.append(_check_inside(_elements_type(self.indexed), self.indexed.values()))
        if len(checks) == 1:
            return checks[0]
        return lambda value: all(check(value) for check in checks)


def _check_of_text(test: Test, *, is_root: bool) -> _Check:
    if is_root:
        return lambda value: test(None if value is None else bytes(value_of(value)))
    return lambda value: test(None if value is None else bytes(value))


class _Type(NamedTuple):
    """Decodes the wanted values of an object or an array; msgspec skips all others.

    Attributes:
        decode: Decodes one; `ValidationError` for a value of another type.
        readers: For each wanted value, in order, what reads it from that; None for a missing one.
    """

    decode: Callable[[bytes | Raw], Any]
    readers: Sequence[Callable[[Any], Raw | None]]


def _fields_type(names: Sequence[str]) -> _Type:
    attributes = [f"at_{number}" for number in range(len(names))]
    renamed = dict(zip(attributes, names, strict=True))
    try:
        fields = [(attribute, Raw, None) for attribute in attributes]
        type_ = defstruct("Fields", fields, rename=renamed, gc=False)
    except ValueError:
        # A name that JSON has to escape.
        return _Type(Decoder(dict[str, Raw]).decode, [methodcaller("get", name) for name in names])
    return _Type(Decoder(type_).decode, [attrgetter(attribute) for attribute in attributes])


def _elements_type(indexes: Collection[int]) -> _Type:
    fields = [(f"at_{index}", Raw, None) for index in range(max(indexes) + 1)]
    type_ = defstruct("Elements", fields, array_like=True, gc=False)
    return _Type(Decoder(type_).decode, [attrgetter(f"at_{index}") for index in indexes])


def _check_inside(inner: _Type, nodes: Iterable[_ValueTests]) -> _Check:
    """The check of the values inside a value; in one of another type all of them are missing."""
    decode, readers = inner
    checks = [node.check() for node in nodes]
    pairs = list(zip(readers, checks, strict=True))

    def passes(value: bytes | Raw | None) -> bool:
        try:
            found = None if value is None else decode(value)
        except ValidationError:
            # It is not known yet whether it is JSON.
            value_of(cast(bytes, value))
            found = None
        if found is None:
            return all(check(None) for check in checks)
        # A third faster than `all` with a generator.
        for read, check in pairs:  # noqa: SIM110
            if not check(read(found)):
                return False
        return True

    return passes


def is_true(text: bytes | None) -> bool:
    """Whether there is a value other than null and false, as in jq's `select`."""
    return text not in (None, b"null", b"false")


def opposite(test: Test) -> Test:
    """The opposite test; it also passes a missing value."""
    return lambda text: not test(text)


def equals(value: str, *, is_quoted: bool) -> Test:
    """The test for a string; unless quoted, also for a number, true, false or null.

    What is missing is null, as in jq.

    Raises:
        OverflowError: The value is a number whose exponent is too large.
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
    """The test that compares numbers with a number, or strings with any other value.

    Raises:
        OverflowError: The value is a number whose exponent is too large.
    """
    number = None if is_quoted else _number(value)

    def test(text: bytes | None) -> bool:
        if text is None:
            return False
        if number is None:
            return text[:1] == b'"' and compare(string_of(text), value)
        found = _number_in_data(text)
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


def _number(text: str) -> int | Decimal | None:
    """A number of any length; None for other text.

    Raises:
        OverflowError: Its exponent has about twenty digits.
    """
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
