"""Text that is safe to show: all text from the server and all file names pass through here."""

from collections.abc import Callable

# Control and format characters (direction overrides, zero-width characters), surrogates, private
# use, unassigned, and the two separators that end a line.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class JsonText(str):
    """A value that is JSON text already, and is written to JSON as it is."""

    __slots__ = ()


def escaped(raw: bytes) -> str:
    """Decode bytes, and escape characters that could control or deceive a terminal."""
    # Bytes that are not UTF-8 become `\xff`, control and format characters `\x1b` or `\u202e`,
    # line ends and tabs `\n`, `\r`, `\t`.
    return escaped_text(raw.decode("utf-8", "backslashreplace"))


def escaped_text(text: str) -> str:
    """Escape such characters in text; surrogates stand for bytes that are not UTF-8 (PEP 383)."""
    return apply_escapes(text, _escape)


def apply_escapes(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and text.isascii():
        return text
    # Imported here, because most text is ASCII, and the import takes two milliseconds.
    from unicodedata import category

    # Python looks at each distinct character once, C does the rest: an item may have megabytes.
    unsafe = (character for character in set(text) if category(character) in _UNSAFE_CATEGORIES)
    return text.translate({ord(character): escape(character) for character in unsafe})


def _escape(character: str) -> str:
    code = ord(character)
    byte = chr(code - 0xDC00) if 0xDC80 <= code <= 0xDCFF else character
    return byte.encode("unicode_escape").decode()
