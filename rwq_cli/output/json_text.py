"""JSON data unchanged: no number loses a digit, and no value is decoded unless it is needed.

JSON is as in RFC 8259, in UTF-8: no NaN, no Infinity. A lone surrogate, which is not text, is read
as U+FFFD, and data nested deeper than about 900 levels is not read.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, ValidationError
from msgspec.json import Decoder, format as reformat

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.descriptors import foreign_encoding, how_to_convert
from rwq_cli.output.escape import JsonText

string_of = Decoder(str).decode
_value_of = Decoder(Raw).decode
_members_of = Decoder(dict[str, Raw]).decode
_elements_of = Decoder(list[Raw]).decode

# Keys and indexes, from the outside in; empty for all of the data.
Path = Sequence[str | int]

# An escape: a surrogate pair, a lone surrogate, or anything else.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = r"(?:[\w$@/-]|[^\x00-\x7f\s])+"
_BRACKETS = rf"\[(?:[0-9]+|{QUOTED})\]"
_ELEMENT = f"(?:{_KEY}|{QUOTED}|{_BRACKETS})"
# A dot alone stands for all of the data.
PATH = re.compile(rf"\.?{_ELEMENT}(?:\.{_ELEMENT}|{_BRACKETS})*|\.", re.DOTALL)
_STEP = re.compile(_ELEMENT, re.DOTALL)
_PATHS = "a path is like .tenant.id, .items[0].sku or .'odd key'"


def check_utf8(data: bytes) -> None:
    """Raise `UnicodeDecodeError` for what is not UTF-8: a string that stays raw is not checked."""
    if not data.isascii():
        data.decode()


def half_pair(data: bytes) -> str | None:
    r"""Find the first lone surrogate, such as `\ud83d`; None if there is none."""
    half = next((match[1] for match in _ESCAPE.finditer(data) if match[1]), None)
    return None if half is None else f"\\{half.decode()}"


def document_of(data: bytes) -> Raw:
    """Parse data as one JSON document, without the whitespace around it."""
    # Many encoders write lone surrogates. For every command, such data is JSON.
    check_utf8(data)
    try:
        return _value_of(data)
    except ValueError:
        if half_pair(data) is None:
            raise
    return _value_of(_ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], data))


def json_error(data: bytes) -> str | None:
    try:
        document_of(data)
    except ValueError as error:
        return _reason(data, error)
    except RecursionError:
        pass
    return None


def reason_of(line: bytes, error: Exception) -> str:
    """Say why a line of JSON could not be decoded."""
    if isinstance(error, RecursionError):
        return "not JSON: nested too deeply"
    if not isinstance(error, UnicodeDecodeError) and (half := half_pair(line)) is not None:
        # What is stored must be what was written.
        return f"it has {half}, half of a surrogate pair, which is not a character"
    return f"not JSON: {_reason(line, error)}"


def _reason(data: bytes, error: Exception) -> str:
    if (encoding := foreign_encoding(data)) is not None:
        return f"{encoding}, not UTF-8; {how_to_convert(encoding)} converts it"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    reason = str(error).removeprefix("JSON is malformed: ")
    return reason[:1].lower() + reason[1:]


def field_error(error: Exception) -> str:
    """Say what is wrong with a line, such as "due_ms: expected `int`, got `str`"."""
    what, _, place = str(error).partition(" - at `$")
    field = place.strip(".`")
    return f"{field}: {what[0].lower()}{what[1:]}" if field else what[0].lower() + what[1:]


def text_of(value: Raw) -> bytes:
    text = bytes(value)
    return string_of(text).encode() if text[:1] == b'"' else reformat(text, indent=-1)


def json_text(data: bytes) -> JsonText | None:
    try:
        return JsonText(reformat(bytes(document_of(data)), indent=0).decode())
    except (ValueError, RecursionError):
        return None


def indented(data: bytes) -> bytes:
    """Indent JSON, with numbers and keys as they were written; other data stays as it is."""
    try:
        return reformat(data, indent=2)
    except (ValueError, RecursionError):
        return data


def value_in(value: Raw, path: Path) -> bytes | None:
    for step in path:
        try:
            inner: Any = _members_of(value) if isinstance(step, str) else _elements_of(value)
            value = inner[step]
        except (ValidationError, LookupError):
            return None
    return bytes(value)


def value_at(data: bytes, path: Path) -> str | None:
    try:
        text = value_in(document_of(data), path)
        if text is None or text == b"null":
            return None
        return string_of(text) if text[:1] == b'"' else json_text(text)
    except (ValueError, RecursionError):
        return None


def parse_path(text: str) -> Path:
    """Parse a path like `.tenant.id` into keys and indexes; raises `InvalidArgument` if invalid."""
    if not (PATH.fullmatch(text) and is_utf8(text)):
        raise InvalidArgument(f"not a path into JSON data: {text!r}", _PATHS)
    return [_step(match[0]) for match in _STEP.finditer(text)]


def _step(text: str) -> str | int:
    inner = text[1:-1] if text.startswith("[") else ""
    # The index of no array has more digits; they are cut.
    return int(inner[:18]) if inner.isdecimal() else unquoted(inner or text)


def unquoted(text: str) -> str:
    """Remove quotes: double quotes as in JSON, single quotes without escapes."""
    try:
        return string_of(text.encode()) if text.startswith('"') else text.strip("'")
    except ValueError:
        hint = "in single quotes, \\ is a plain character"
        raise InvalidArgument(f"not a JSON string: {text}", hint)


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
