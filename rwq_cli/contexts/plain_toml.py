"""Reading the subset of TOML that rwq writes: importing tomllib takes longer than reading a file.

The subset is tables of two bare names, bare keys, strings without escapes, and booleans. A file
with anything else, even an error, is left to tomllib.
"""

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_BOOLEANS = {"true": True, "false": False}

Table = dict[str, str | bool]


def parse_plain(text: str) -> dict[str, str | bool | dict[str, Table]] | None:
    """The document as tomllib reads it; None if only tomllib can read it."""
    top: Table = {}
    groups: dict[str, dict[str, Table]] = {}
    table = top
    for line in text.split("\n"):
        line = line.strip(" ")
        if not line.isprintable():
            return None
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            group, _, name = line[1:-1].partition(".")
            tables = groups.setdefault(group, {})
            if not line.endswith("]") or not _is_bare(group, name) or name in tables:
                return None
            table = tables[name] = {}
            continue
        key, _, written = line.partition("=")
        key, written = key.rstrip(" "), written.lstrip(" ")
        if not _is_bare(key) or key in table:
            return None
        if written in _BOOLEANS:
            table[key] = _BOOLEANS[written]
        elif _is_string(written):
            table[key] = written[1:-1]
        else:
            return None
    if top.keys() & groups.keys():
        return None
    return {**top, **groups}


def _is_bare(*names: str) -> bool:
    return all(name and _BARE.issuperset(name) for name in names)


def _is_string(written: str) -> bool:
    """Whether a value is a string on one line, without escapes."""
    inner = written[1:-1]
    is_quoted = len(written) >= 2 and written[0] == written[-1] == '"'
    return is_quoted and '"' not in inner and "\\" not in inner
