"""Values for machines: what goes into JSON and CSV for bytes, leases and the rest."""

import json
from base64 import b64encode
from typing import Any

from rwq_cli.output.escape import is_safe


def bytes_fields(name: str, raw: bytes | None) -> dict[str, str | None]:
    """The two fields of a byte string: `name` if it is UTF-8, else `name_b64`; none left out."""
    if raw is None:
        return {name: None, f"{name}_b64": None}
    try:
        return {name: raw.decode("utf-8"), f"{name}_b64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}_b64": b64encode(raw).decode("ascii")}


def to_json(value: Any) -> bytes:
    """One compact JSON value; what could drive or deceive a terminal becomes `\\u` escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    if not text.isprintable():
        # JSON itself escapes only the controls below space; strings are all that can hold others.
        text = "".join(
            character if is_safe(character) else json.dumps(character)[1:-1] for character in text
        ).replace("\x7f", "\\u007f")
    return text.encode("utf-8")


# Objects that may be null, with their fields: CSV has a column for each all the same.
_NESTED = {
    "lease": ("holder", "ttl_ms"),
    "result": ("status", "completed_ms", "bytes", "ttl_ms"),
}


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record for CSV: nested objects become `outer_inner`, lists are joined by spaces."""
    out: dict[str, Any] = {}
    for name, value in record.items():
        # What has a field for bytes that are no text is a string itself.
        if name in _NESTED and f"{name}_b64" not in record:
            inner_fields = value or {}
            out.update({f"{name}_{inner}": inner_fields.get(inner) for inner in _NESTED[name]})
        elif isinstance(value, dict):
            out.update({f"{name}_{inner}": entry for inner, entry in flat(value).items()})
        elif isinstance(value, list):
            out[name] = " ".join(str(entry) for entry in value)
        else:
            out[name] = value
    return out
