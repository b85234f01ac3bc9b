"""Values in JSON and CSV."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rwq_cli.output.escape import is_safe
from rwq_cli.output.field import bytes_fields as bytes_fields


class JsonText(str):
    """JSON on one line, which `to_json` writes unchanged if it is a field of the record."""

    __slots__ = ()


def to_json(value: Any) -> bytes:
    """JSON on one line; characters that could control or deceive a terminal are escaped."""
    texts = {}
    if isinstance(value, dict):
        texts = {name: text for name, text in value.items() if isinstance(text, JsonText)}
        value = {**value, **dict.fromkeys(texts)}
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    for name, inner in texts.items():
        # This is not inside a string: quotes are escaped there.
        text = text.replace(f'"{name}": null', f'"{name}": {inner}', 1)
    if not text.isprintable():
        # The encoder escapes only the controls below space; the others can only be in strings.
        text = "".join(
            character if is_safe(character) else json.dumps(character)[1:-1] for character in text
        ).replace("\x7f", "\\u007f")
    return text.encode("utf-8")


def to_indented_json(value: Any) -> bytes:
    """The same on several lines, for people."""
    from msgspec.json import format as reformat

    line = to_json(value)
    try:
        # Numbers and keys are copied, not formatted again.
        return reformat(line, indent=2)
    except (ValueError, RecursionError):
        return line


def flat(record: dict[str, Any], nested: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A record for CSV: nested objects become `outer_inner`, lists are joined by spaces.

    Args:
        record: The record.
        nested: The fields that are an object or null, with the fields inside.
    """
    out: dict[str, Any] = {}
    for name, value in record.items():
        if name in nested:
            out.update({f"{name}_{inner}": (value or {}).get(inner) for inner in nested[name]})
        elif isinstance(value, dict):
            inner_fields = flat(value, {})
            out.update({f"{name}_{inner}": entry for inner, entry in inner_fields.items()})
        elif isinstance(value, list):
            out[name] = " ".join(map(str, value))
        else:
            out[name] = value
    return out
