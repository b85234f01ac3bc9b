"""JSON data unchanged: no number loses a digit, and no value is decoded unless it is needed.

JSON is what RFC 8259 says, in UTF-8: no NaN, no Infinity. Half of a surrogate pair, which is no
text, is read as U+FFFD, and what is nested deeper than about 900 levels is not read.
"""

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec import Raw, ValidationError
from msgspec.json import Decoder, format as reformat

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.escape import JsonText
from rwq_cli.streams import foreign_encoding, how_to_convert

string_of = Decoder(str).decode
_value_of = Decoder(Raw).decode
_members_of = Decoder(dict[str, Raw]).decode
_elements_of = Decoder(list[Raw]).decode

# Keys and indexes, from the outside in; empty for all of the data.
Path = Sequence[str | int]

# An escape: a surrogate pair, half of one, or anything else.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_KEY = re.compile(r"(?:[\w$@/-]|[^\x00-\x7f\s])+")
_INDEX = re.compile(r"[0-9]+")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN_STRING = re.compile(r"'([^']*)'", re.DOTALL)
# How many characters of an expression an error shows.
_SHOWN = 30


def check_utf8(data: bytes) -> None:
    """Raise `UnicodeDecodeError` for what is not UTF-8: a string that stays raw is not checked."""
    if not data.isascii():
        data.decode()


def half_pair(data: bytes) -> str | None:
    r"""The first half of a surrogate pair without the other, such as `\ud83d`; None for none."""
    half = next((found[1] for found in _ESCAPE.finditer(data) if found[1]), None)
    return None if half is None else f"\\{half.decode()}"


def document_of(data: bytes) -> Raw:
    """The document that data are, without the blanks around it."""
    # Many encoders write half of a surrogate pair. For every command, such data are JSON.
    check_utf8(data)
    try:
        return _value_of(data)
    except ValueError:
        if half_pair(data) is None:
            raise
    return _value_of(_ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data))


def json_error(data: bytes) -> str | None:
    try:
        document_of(data)
    except ValueError as error:
        return _reason(data, error)
    except RecursionError:
        pass
    return None


def reason_of(line: bytes, error: Exception) -> str:
    """Why a line of JSON could not be decoded."""
    if isinstance(error, RecursionError):
        return "not JSON: nested too deeply"
    if not isinstance(error, UnicodeDecodeError) and (half := half_pair(line)) is not None:
        # What is stored must be what was written.
        return f"it has {half}, half of a surrogate pair, which is no character"
    return f"not JSON: {_reason(line, error)}"


def _reason(data: bytes, error: Exception) -> str:
    if (encoding := foreign_encoding(data)) is not None:
        return f"{encoding}, not UTF-8; {how_to_convert(encoding)} converts it"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    reason = str(error).removeprefix("JSON is malformed: ")
    return reason[:1].lower() + reason[1:]


def text_of(value: Raw) -> bytes:
    text = bytes(value)
    return string_of(text).encode() if text[:1] == b'"' else reformat(text, indent=-1)


def json_text(data: bytes) -> JsonText | None:
    try:
        return JsonText(reformat(bytes(document_of(data)), indent=0).decode())
    except (ValueError, RecursionError):
        return None


def found_at(value: Raw, path: Path) -> bytes | None:
    for step in path:
        try:
            inner: Any = _members_of(value) if isinstance(step, str) else _elements_of(value)
            value = inner[step]
        except (ValidationError, LookupError):
            return None
    return bytes(value)


def value_at(data: bytes, path: Path) -> str | None:
    try:
        text = found_at(document_of(data), path)
        if text is None or text == b"null":
            return None
        return string_of(text) if text[:1] == b'"' else json_text(text)
    except (ValueError, RecursionError):
        return None


class BadExpression(InvalidArgument):
    """An expression that cannot be parsed; the message says where."""

    def __init__(
        self, option: str, text: str, at: int, message: str, hint: str | None = None
    ) -> None:
        rest = text[at : at + _SHOWN] + ("…" if at + _SHOWN < len(text) else "")
        end = text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"
        where = repr(rest) if rest else f"the end of {end!r}"
        super().__init__(f"{option}, column {at + 1}, at {where}: {message}", hint)


def parse_path(text: str) -> Path:
    scanner = Scanner(text, "--fields")
    path = scanner.path()
    scanner.expect_end("a path is like .tenant.id or .items[0].sku")
    return path


class Scanner:
    def __init__(self, text: str, option: str) -> None:
        self.text, self.at = text, 0
        self._option = option
        for at, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                self.fail("this is not UTF-8, as JSON is", at=at)

    def path(self) -> list[str | int]:
        steps: list[str | int] = []
        is_dotted = self.take(".")
        if is_dotted and self.is_at(" =!<>~", at_end=True):
            return steps
        while is_dotted or not steps or self.is_at("["):
            steps.append(self._in_brackets() if self.take("[") else self._key())
            is_dotted = self.take(".")
        return steps

    def _key(self) -> str:
        if (quoted := self.quoted()) is not None:
            return quoted
        return self.match(_KEY, "a key is missing", "a path is like tenant.id or items[0].sku")

    def _in_brackets(self) -> str | int:
        step: str | int | None = self.quoted()
        if step is None:
            # Longer than any array.
            step = int(self.match(_INDEX, "an index or a quoted key is missing")[:18])
        if not self.take("]"):
            self.fail("a ] is missing")
        return step

    def quoted(self) -> str | None:
        """A string in quotes: double quotes as in JSON, single quotes without escapes."""
        start = self.at
        if not self.is_at("\"'"):
            return None
        is_json = self.is_at('"')
        found = (_JSON_STRING if is_json else _PLAIN_STRING).match(self.text, start)
        if found is None:
            self.fail("this quote is not closed")
        self.at = found.end()
        if not is_json:
            return found[1]
        try:
            return string_of(found[0].encode())
        except ValueError:
            self.fail("not a JSON string", "in single quotes, \\ is a plain character", at=start)

    def match(self, pattern: "re.Pattern[str]", message: str, hint: str | None = None) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            self.fail(message, hint)
        self.at = found.end()
        return found[0]

    def expect_end(self, message: str, hint: str | None = None) -> None:
        self.skip_blanks()
        if self.at < len(self.text):
            self.fail(message, hint)

    def is_at(self, characters: str, *, at_end: bool = False) -> bool:
        if self.at == len(self.text):
            return at_end
        return self.text[self.at] in characters

    def take(self, character: str) -> bool:
        is_there = self.is_at(character)
        self.at += is_there
        return is_there

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def fail(self, message: str, hint: str | None = None, *, at: int | None = None) -> NoReturn:
        raise BadExpression(self._option, self.text, self.at if at is None else at, message, hint)
