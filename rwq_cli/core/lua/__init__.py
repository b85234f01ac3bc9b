"""The Lua scripts: operations in `ops`, libraries in `lib`, and the tables that combine them.

A script is the prelude, the libraries of its operation, a permission check, and the operation
itself. Every script gets the same KEYS and the same first ARGV, which `lib/prelude.lua` names.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

from rwq_cli.core.batches import SCAN_BUDGET_ENTRIES
from rwq_cli.core.keys import (
    BURIED_GUARD,
    DELAYED_GUARD,
    GUARD_MARGIN_MS,
    SETTLING_GUARD,
    QueueKeys,
)
from rwq_cli.core.model import DIGITS_MAX, STATE_CODES, STATUS_CODES, TIME_MS_MAX

# The libraries that each library and each operation includes.
INCLUDES: dict[str, tuple[str, ...]] = {
    "expected": ("facts",),
    "facts": ("state",),
    "identity": ("facts",),
    "locate": ("facts",),
    "marks": (),
    "results": ("facts",),
    "returns": ("schedule",),
    "schedule": ("facts",),
    "taking": ("locate", "expected", "returns"),
    # Operations.
    "ops/access": (),
    "ops/add": ("schedule",),
    "ops/complete": ("locate", "expected", "results"),
    "ops/delete_results": ("results",),
    "ops/delete_stray_leases": ("facts",),
    "ops/find_ambiguous": ("facts",),
    "ops/first_item": (),
    "ops/lease": ("schedule",),
    "ops/lease_by_id": ("locate", "schedule"),
    "ops/look_up": ("identity",),
    "ops/probe": ("identity",),
    "ops/prune": ("schedule",),
    "ops/push_scheduled": ("locate", "expected", "schedule"),
    "ops/ready": (),
    "ops/release": ("taking", "schedule", "returns"),
    "ops/remove": ("locate", "expected", "schedule", "marks"),
    "ops/repair": ("locate", "expected", "identity", "schedule", "returns"),
    "ops/restore": ("schedule", "marks"),
    "ops/restore_guards": ("locate", "schedule"),
    "ops/restore_results": ("results", "marks"),
    "ops/results": ("results",),
    "ops/schedule": ("taking", "schedule", "returns"),
    "ops/scheduled_page": (),
    "ops/set_data": ("facts",),
    "ops/snapshot": ("locate",),
    "ops/states": ("identity",),
    "ops/touch": ("facts",),
}

_FORGET = {
    "leases": "MGET DEL",
    "delayed": "ZREM",
    "buried": "ZREM",
    "returns": "HDEL",
    "cleaning": "LREM",
}
_REMOVE_ENTRIES = {"processing": "LREM LSET RPOP", "main": "LREM LSET RPOP"}
_PUSH = {"main": "LREM LSET RPOP LPUSH RPUSH"}
_UNSCHEDULE = {
    "delayed": "ZREM ZCOUNT ZREMRANGEBYSCORE",
    "buried": "ZREM ZCOUNT ZREMRANGEBYSCORE",
}

# The commands that a script must be allowed to run, by key, before it writes anything: a script
# that is denied halfway is not rolled back. The script checks the group of its own name, unless it
# is a dry run; it checks the other groups when it needs them.
NEEDS: dict[str, dict[str, str]] = {
    "ops/add": {"item": "SETNX MSETNX", "main": "LPUSH"},
    "add_unique": {"item": "MSET"},
    "add_delayed": {"leases": "SET", "delayed": "ZADD", "": "TIME"},
    "forget_leases": {"leases": "DEL"},
    "forget_leftovers": {
        "delayed": "ZREM",
        "buried": "ZREM",
        "returns": "HDEL",
    },
    "ops/complete": {**_REMOVE_ENTRIES, **_FORGET, "item": "DEL"},
    "count_returns": {"returns": "HMGET HSET"},
    "mark_lines": {"marks": "BITFIELD_RO BITFIELD PEXPIRE"},
    "move": {
        "renamed": "RENAMENX",
        "to_main": "LPUSH",
        "to_delayed": "ZREM",
        "to_buried": "ZREM",
        "to_returns": "HSET HDEL",
        "to_leases": "SET",
    },
    "read_results": {"result": "EXISTS TYPE HMGET"},
    "keep_results": {"result": "EXISTS TYPE HMGET HSET PEXPIRE", "": "TIME"},
    "delete_results": {"result": "DEL"},
    "ops/delete_results": {"result": "DEL"},
    "ops/delete_stray_leases": {"leases": "DEL"},
    "ops/lease": {"main": "RPOP", "processing": "LPUSH", "leases": "SET"},
    "promote": {**_UNSCHEDULE, "leases": "SET DEL GET", "main": "LPUSH"},
    "ops/lease_by_id": {
        **_UNSCHEDULE,
        "main": "LREM LSET RPOP",
        "processing": "LREM LSET RPOP LPUSH",
        "leases": "SET",
        "": "TIME",
    },
    "ops/prune": {
        "cleaning": "LREM RPOP LPUSH",
        "delayed": "ZREM",
        "buried": "ZREM",
        "returns": "HDEL",
        "leases": "DEL GET",
    },
    "ops/push_scheduled": {
        **_REMOVE_ENTRIES,
        **_UNSCHEDULE,
        **_PUSH,
        "leases": "SET DEL GET",
        "returns": "HDEL",
        "": "TIME",
    },
    "ops/release": {**_REMOVE_ENTRIES, **_UNSCHEDULE, **_PUSH, "leases": "SET GET"},
    "ops/remove": {**_REMOVE_ENTRIES, **_FORGET, "item": "DEL GET GETRANGE"},
    "ops/repair": {
        **_REMOVE_ENTRIES,
        **_UNSCHEDULE,
        **_PUSH,
        "leases": "SET DEL GET",
        "returns": "HSET",
        "": "TIME",
    },
    "bury_returned": {"leases": "MSET", "buried": "ZADD"},
    "ops/restore": {
        **_FORGET,
        "item": "MSET GET",
        "main": "LPUSH RPUSH LREM",
        "processing": "LPUSH LREM",
        "delayed": "ZADD ZREM",
        "buried": "ZADD ZREM",
        "returns": "HSET HDEL",
        "leases": "MGET SET DEL",
        "": "TIME",
    },
    "ops/restore_guards": {"leases": "SET GET", "": "TIME"},
    "ops/restore_results": {"result": "HSET HDEL PEXPIRE PERSIST"},
    "ops/results": {"result": "TYPE HMGET HEXISTS HSTRLEN HGET PTTL"},
    "ops/schedule": {
        **_REMOVE_ENTRIES,
        "leases": "SET GET",
        "delayed": "ZADD ZREM ZCOUNT ZREMRANGEBYSCORE",
        "buried": "ZADD ZREM ZCOUNT ZREMRANGEBYSCORE",
        "": "TIME",
    },
    "ops/set_data": {"item": "SET GET STRLEN"},
    # What reading commands need; asked for only by `ops/access`.
    "read": {
        "main": "TYPE LLEN LRANGE LPOS",
        "delayed": "ZRANGE ZSCORE",
        "item": "EXISTS GET STRLEN",
        "leases": "GET PTTL",
        "": "TIME",
    },
    "ops/touch": {"leases": "SET GET"},
}

# The arguments that a command needs for an ACL check; other commands need none.
_SAMPLE_ARGS = {
    "BITFIELD": ", 'SET', 'u1', 0, 1",
    "BITFIELD_RO": ", 'GET', 'u1', 0",
    "GETRANGE": ", 0, 1",
    "HDEL": ", 'x'",
    "HEXISTS": ", 'x'",
    "HGET": ", 'x'",
    "HMGET": ", 'x'",
    "HSET": ", 'x', '1'",
    "HSTRLEN": ", 'x'",
    "LPOS": ", 'x'",
    "LPUSH": ", 'x'",
    "LRANGE": ", 0, 0",
    "LREM": ", 0, 'x'",
    "LSET": ", 0, 'x'",
    "MSET": ", 'x'",
    "MSETNX": ", 'x'",
    "PEXPIRE": ", 1",
    "RPUSH": ", 'x'",
    "SET": ", 'x'",
    "SETNX": ", 'x'",
    "ZADD": ", 0, 'x'",
    "ZCOUNT": ", 0, 0",
    "ZREM": ", 'x'",
    "ZRANGE": ", 0, 0",
    "ZREMRANGEBYSCORE": ", 0, 0",
    "ZSCORE": ", 'x'",
}
_KEYS = {
    "item": ("item_prefix .. '*'",),
    "leases": ("lease_prefix .. '*'", "old_lease_prefix .. '*'"),
    "result": ("result_prefix .. '*'",),
    # Arguments of the operations that use these keys.
    "marks": ("arg(MARKS_AT)",),
    "to_main": ("arg(8)",),
    "to_delayed": ("arg(10)",),
    "to_buried": ("arg(11)",),
    "to_returns": ("arg(12)",),
    "renamed": ("item_prefix .. '*', arg(13) .. '*'",),
    "to_leases": ("arg(14) .. '*'", "arg(15) .. '*'"),
}
# The number of the argument that is the key of the marks, if not 1.
_MARKS_AT = {"ops/remove": 18}
# The prefixes of rwq's own lease values, by their names in the libraries: three guards.
_GUARDS = {
    "delayed": DELAYED_GUARD,
    "buried": BURIED_GUARD,
    "settling": SETTLING_GUARD,
}
# An item is identified by digits of the SHA-1 of its data, and of the time when rwq pushed it.
DATA_DIGITS, PUSH_DIGITS = 12, 4
IDENTITY_DIGITS = DATA_DIGITS + PUSH_DIGITS
# The fingerprint of larger data covers only both ends and the length: hashing takes two
# milliseconds per megabyte.
FINGERPRINT_BYTES = 4 * 1024 * 1024
# The constants that a library or an operation shares with Python.
_CONSTANTS = {
    "facts": {"SCAN_BUDGET_ENTRIES": SCAN_BUDGET_ENTRIES},
    "results": {"DIGITS_MAX": DIGITS_MAX},
    "returns": {"DIGITS_MAX": DIGITS_MAX},
    "schedule": {"GUARD_MARGIN_MS": GUARD_MARGIN_MS, "TIME_MS_MAX": TIME_MS_MAX},
    "identity": {"DATA_DIGITS": DATA_DIGITS, "PUSH_DIGITS": PUSH_DIGITS},
    "expected": {"FINGERPRINT_BYTES": FINGERPRINT_BYTES},
}
_HERE = Path(__file__).parent


class Script(NamedTuple):
    """A script as it is sent to the server.

    Attributes:
        text: The whole text.
        sha1: Its SHA-1 in hexadecimal, for EVALSHA.
        parts: The files that it consists of, each with its number of lines; "" for generated lines.
    """

    text: str
    sha1: str
    parts: tuple[tuple[str, int], ...]

    def origin(self, line: int) -> tuple[str, int]:
        """Map a line of the text to a file and a line in it; lines count from 1."""
        for name, length in self.parts:
            if line <= length:
                return name, line
            line -= length
        return "", line


@cache
def load_script(name: str) -> Script:
    """Read a script.

    Args:
        name: The operation: a file of `ops` without `.lua`.

    Raises:
        FileNotFoundError: There is no such operation.
    """
    operation = f"ops/{name}"
    libraries = dict.fromkeys(_libraries(operation))
    # Functions, because few calls need them.
    tables = [
        f"local function {name}() return {{ {', '.join(_codes(codes))} }} end"
        for name, codes in (("status_codes", STATUS_CODES), ("state_codes", STATE_CODES))
    ]
    checks_all = operation == "ops/access"
    if checks_all or "marks" in libraries:
        tables.append(f"local MARKS_AT = {_MARKS_AT.get(operation, 1)}")
    tables += _constants(*libraries, operation)
    tables += [
        f"NEEDS['{group}'] = function() return {{ {', '.join(_commands(group))} }} end"
        for group in NEEDS
        if checks_all
        or group == operation
        or (not group.startswith("ops/") and _uses(group, operation))
    ]
    check = (
        f"local refusal = not dry_run and denied('{operation}')\nif refusal then return refusal end"
    )
    parts = [
        ("lib/prelude.lua", _read("lib/prelude.lua")),
        ("", "\n".join(tables) + "\n"),
        *((f"lib/{library}.lua", _read(f"lib/{library}.lua")) for library in libraries),
        ("", check + "\n"),
        (f"{operation}.lua", _read(f"{operation}.lua")),
    ]
    text = "".join(part for _, part in parts)
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(text, digest, tuple((name, part.count("\n")) for name, part in parts))


def library_text(*names: str) -> str:
    """The text of libraries, and of those that they include, for tests of single libraries."""
    needed = dict.fromkeys(other for name in names for other in (*_libraries(name), name))
    made = "\n".join(_constants(*needed))
    return made + "\n" + "".join(_read(f"lib/{name}.lua") for name in needed)


@cache
def _read(name: str) -> str:
    # Loading importlib.resources would take longer than reading all scripts.
    return (_HERE / name).read_text("utf-8")


def _libraries(name: str) -> Iterator[str]:
    """The libraries that a file includes, each after those that it includes itself."""
    for library in INCLUDES.get(name, ()):
        yield from _libraries(library)
        yield library


def _uses(group: str, operation: str) -> bool:
    names = (f"{operation}.lua", *(f"lib/{library}.lua" for library in _libraries(operation)))
    return any(f"denied('{group}')" in _read(name) for name in names)


def _constants(*names: str) -> Iterator[str]:
    """The definitions of what libraries and operations share with Python."""
    for constants in (_CONSTANTS.get(name, {}) for name in names):
        yield from (f"local {constant} = {value}" for constant, value in constants.items())
    prefixes = ", ".join(f"{name} = '{prefix.decode()}'" for name, prefix in _GUARDS.items())
    yield f"local GUARDS = {{ {prefixes} }}"


def _codes(codes: Mapping[Any, str]) -> Iterator[str]:
    return (f"['{name.value}'] = '{code}'" for name, code in codes.items())


def _commands(group: str) -> Iterator[str]:
    """The commands of a group as Lua tables."""
    for key, commands in NEEDS[group].items():
        for command in commands.split():
            if not key:
                yield f"{{ '{command}' }}"
            for name in _KEYS.get(key, (key,)) if key else ():
                yield f"{{ '{command}', {name}{_SAMPLE_ARGS.get(command, '')} }}"


def queue_keys(keys: QueueKeys) -> tuple[bytes, ...]:
    """The KEYS of every script, as `prelude.lua` names them."""
    return tuple(keys.structures)


def queue_args(keys: QueueKeys, *, dry_run: bool) -> tuple[bytes, ...]:
    """The first ARGV of every script, as `prelude.lua` names them."""
    return (
        keys.item_prefix,
        keys.lease_prefix,
        keys.old_lease_prefix,
        keys.result_prefix,
        b"1" if dry_run else b"0",
    )
