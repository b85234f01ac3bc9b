"""Values for machines: what goes into JSON and CSV for bytes, leases and the rest."""

import json
from base64 import b64encode
from typing import Any


def bytes_fields(name: str, raw: bytes | None) -> dict[str, str | None]:
    """The two fields of a byte string: `name` if it is UTF-8, else `name_b64`; none left out."""
    if raw is None:
        return {name: None, f"{name}_b64": None}
    try:
        return {name: raw.decode("utf-8"), f"{name}_b64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}_b64": b64encode(raw).decode("ascii")}


def to_json(value: Any) -> bytes:
    """One compact JSON value on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode("utf-8")


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record for CSV: nested objects become `outer_inner`, lists are joined by spaces."""
    out: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            out.update({f"{name}_{inner}": inner_value for inner, inner_value in value.items()})
        elif isinstance(value, list):
            out[name] = " ".join(str(entry) for entry in value)
        else:
            out[name] = value
    return out
