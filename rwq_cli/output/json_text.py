"""JSON data unchanged: no number loses a digit, and no value is decoded unless it is needed.

JSON is what RFC 8259 says, in UTF-8: no NaN, no Infinity. Half of a surrogate pair is not text,
and what is nested deeper than about 900 levels is not read.
"""

from msgspec import Raw
from msgspec.json import Decoder, format as reformat

string_of = Decoder(str).decode
# The value without the blanks around it. It raises `ValueError`, or `RecursionError` for what is
# nested too deeply.
value_of = Decoder(Raw).decode


def check_utf8(data: bytes) -> None:
    """Raise `UnicodeDecodeError` for what is not UTF-8: a string that stays raw is not checked."""
    if not data.isascii():
        data.decode()


def text_of(value: Raw) -> bytes:
    """The text of a string; any other JSON value without whitespace between its tokens."""
    text = bytes(value)
    return string_of(text).encode() if text[:1] == b'"' else reformat(text, indent=-1)


def json_text(data: bytes) -> str | None:
    """JSON data on one line; None if it is not JSON."""
    try:
        return reformat(bytes(value_of(data)), indent=0).decode()
    except (ValueError, RecursionError):
        return None
