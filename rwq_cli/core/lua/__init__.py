"""The Lua scripts: operations in `ops`, libraries in `lib`. Their headers say what belongs to them.

A script is the prelude, the libraries of its operation, a permission check, and the operation
itself. Every script gets the same KEYS and the same first ARGV, which `lib/prelude.lua` names.
Lines of a header that are read here:

- `-- include: NAME, …`: the libraries that the file uses.
- `-- arg NAME[:TYPE]  …`: an argument, in order; a local variable of that name. TYPE is `number` or
  `flag`; without it, the argument is text. The arguments of libraries come first.
- `-- rest NAME  …`: the arguments after those, as a table.
- `-- budget: N items  …`: how many items a call takes at most, in some five milliseconds, and why:
  `Queue.budget`.
- `-- writes: KEY COMMAND…; …`: the commands that a user must be allowed to run before the script
  writes anything, because no server rolls back a script that is denied halfway. `server` stands for
  commands without a key. An operation checks them unless it is a dry run.
- `-- writes NAME: …`: those that only some calls need; the script checks them by
  `denied(NEEDS.NAME())`.
- `-- commands: NAME, …`, `-- commands GROUP: NAME, …`: the commands of rwq that run the script, and
  those that need a group, as `rwq context check` names them to a user who may not run them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha1
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.batches import BUDGET
from rwq_cli.core.keys import (
    BURIED_GUARD,
    DELAYED_GUARD,
    GUARD_MARGIN_MS,
    MOVING,
    MOVING_HERE,
    OWN_LEASE,
    SETTLING_GUARD,
)
from rwq_cli.core.model import DIGITS_MAX, State, Status

# The keys of a header that are not a local variable, or stand for several.
_KEYS = {
    "server": ("",),
    "item": (", item_prefix .. '*'",),
    "leases": (", lease_prefix .. '*'", ", old_lease_prefix .. '*'"),
    "result": (", result_prefix .. '*'",),
    "clean_lock": (", string.sub(main, 1, -6) .. 'clean-lock'",),
    "move_lock": (", string.sub(main, 1, -6) .. 'move-lock'",),
    "history": (", string.sub(main, 1, -6) .. 'history'",),
    "moved": (", string.sub(main, 1, -6) .. 'moved:*'",),
    "marks": (", marks ~= '' and marks or string.sub(main, 1, -6) .. 'undo:*'",),
    "renamed": (", item_prefix .. '*'", ", to_item .. '*'"),
    "to_leases": (", to_lease .. '*'", ", to_old_lease .. '*'"),
}
# Digits of the SHA-1 by which a second look recognizes an item's data.
DIGEST_DIGITS = 12
# The token of larger data covers only both ends and the length: hashing takes a millisecond and a
# half per megabyte.
TOKEN_BYTES = 4 * 1024 * 1024


def _codes(kinds: Iterable[Status | State]) -> str:
    # A function, because few calls need it.
    pairs = ", ".join(f"['{kind}'] = '{kind.code}'" for kind in kinds)
    return f"function() return {{ {pairs} }} end"


# What the files share with Python, by name.
CONSTANTS = {
    "DIGEST_DIGITS": DIGEST_DIGITS,
    "DIGITS_MAX": DIGITS_MAX,
    "TOKEN_BYTES": TOKEN_BYTES,
    "GUARD_MARGIN_MS": GUARD_MARGIN_MS,
    "OWN_LEASE": f"'{OWN_LEASE.decode()}'",
    "GUARDS": f"{{ delayed = '{DELAYED_GUARD.decode()}', buried = '{BURIED_GUARD.decode()}', "
    f"settling = '{SETTLING_GUARD.decode()}' }}",
    "COPY_GUARD": f"'{(BURIED_GUARD + MOVING_HERE).decode()}'",
    "MOVING_GUARD": f"'{(BURIED_GUARD + MOVING).decode()}'",
    "BUDGET_BYTES": BUDGET.bytes,
    "BUDGET_ENTRIES": BUDGET.entries,
    "state_codes": _codes(State),
    "status_codes": _codes(Status),
}
_CONVERSIONS = {"": "{}", "number": "tonumber({})", "flag": "{} == '1'"}
_HERE = Path(__file__).parent
# How many ARGV precede those of the script.
HEAD_WORDS = 5


class Script(NamedTuple):
    name: str
    text: str
    sha1: str
    args: tuple[str, ...]


class ScriptHeader(NamedTuple):
    includes: tuple[str, ...]
    args: tuple[tuple[str, str], ...]
    rest: str
    items_max: int
    writes: Mapping[str, Mapping[str, Sequence[str]]]
    commands: Mapping[str, Sequence[str]]


@cache
def load_script(name: str) -> Script:
    """Read the script of an operation: a file of `ops`, named without `.lua`."""
    operation = f"ops/{name}"
    libraries = libraries_of(operation)
    files = *libraries, operation
    args = [arg for file in files for arg in header_of(file).args]
    bindings = [
        f"local {arg} = " + _CONVERSIONS[kind].format(f"ARGV[{at}]")
        for at, (arg, kind) in enumerate(args, HEAD_WORDS + 1)
    ]
    read = "".join(map(_read, files))
    bindings += [f"local {word} = {value}" for word, value in CONSTANTS.items() if word in read]
    if rest := header_of(operation).rest:
        bindings.append(f"local {rest} = {{ unpack(ARGV, {HEAD_WORDS + len(args) + 1}) }}")
    checked = [f for f in all_files() if f.startswith("ops/")] if name == "access" else [operation]
    check = [
        "local NEEDS = {}",
        # Functions, because most calls need few of them.
        *(
            f"NEEDS['{group}'] = function() return {{ {', '.join(commands)} }} end"
            for file in checked
            for group, commands in _needs(file).items()
        ),
        f"local refusal = not dry_run and NEEDS['{operation}'] and denied(NEEDS['{operation}']())",
        "if refusal then return refusal end",
    ]
    parts = [_read("lib/prelude"), *bindings, *map(_read, libraries), *check, _read(operation)]
    text = "\n".join(parts)
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, digest, tuple(arg for arg, _ in args))


def items_max(script: str) -> int:
    """How many items a call of a script may take, by its header."""
    return header_of(f"ops/{script}").items_max


def _needs(file: str) -> dict[str, list[str]]:
    """The commands that an operation checks, as Lua tables, by group: those that each of its calls
    needs by its own name."""
    groups: dict[str, list[str]] = {}
    for part in (*libraries_of(file), file):
        for group, keys in header_of(part).writes.items():
            groups.setdefault(group or file, []).extend(
                f"{{ '{command}'{name} }}"
                for key, commands in keys.items()
                for command in commands
                for name in _KEYS.get(key, (f", {key}",))
            )
    return groups


def script_words(name: str, rest: Iterable[object] = (), **args: object) -> list[object]:
    """The ARGV of a script after those of every script: its arguments and those of its libraries,
    by name, and the rest. None is empty text; a missing or unknown one is a TypeError."""
    names = load_script(name).args
    if args.keys() != set(names):
        raise TypeError(f"{name} takes {', '.join(names)}, not {', '.join(args)}")
    return [*(_word(args[arg]) for arg in names), *rest]


def _word(value: object) -> bytes | str:
    # Text, so that whoever sends it need not look at each word.
    if value is None or isinstance(value, (bytes, str)):
        return value or b""
    return str(int(value) if isinstance(value, bool) else value)


def all_files() -> list[str]:
    """All libraries and operations, such as `lib/facts` and `ops/add`."""
    from importlib.resources import files

    here = files(__name__)
    names = (f"{d}/{file.name}" for d in ("lib", "ops") for file in (here / d).iterdir())
    return sorted(name.removesuffix(".lua") for name in names if name.endswith(".lua"))


def command_groups() -> dict[str, list[str]]:
    """Return what each command of rwq needs: the operations, and the groups of NEEDS, by name."""
    groups_of: dict[str, list[str]] = {}
    for file in all_files():
        for group, commands in header_of(file).commands.items():
            for command in commands:
                groups_of.setdefault(command, []).append(group or file)
    return dict(sorted(groups_of.items()))


def libraries_of(file: str) -> list[str]:
    """The libraries that a file includes, each after those that it includes itself."""
    libraries: dict[str, None] = {}
    for library in header_of(file).includes:
        libraries.update(dict.fromkeys([*libraries_of(library), library]))
    return list(libraries)


@cache
def header_of(file: str) -> ScriptHeader:
    lines = list(takewhile(lambda line: line.startswith("--"), _read(file).split("\n")))
    # A line that is indented further goes on with the one before it.
    text = re.sub(r"\n--   +", " ", "\n".join(lines))
    included = re.findall(r"^-- include: (.*)$", text, re.M)
    return ScriptHeader(
        includes=tuple(f"lib/{library}" for library in re.findall(r"\w+", " ".join(included))),
        args=tuple(re.findall(r"^-- arg ([a-z]\w*)(?::(\w+))?", text, re.M)),
        rest="".join(re.findall(r"^-- rest (\w+)", text, re.M)),
        items_max=int("".join(re.findall(r"^-- budget: (\d+) items", text, re.M)) or BUDGET.items),
        writes={
            group: {key: commands for key, *commands in map(str.split, needed.split(";"))}
            for group, needed in re.findall(r"^-- writes(?: (\w+))?: (.*)$", text, re.M)
        },
        commands={
            group: names.split(", ")
            for group, names in re.findall(r"^-- commands(?: (\w+))?: (.*)$", text, re.M)
        },
    )


@cache
def _read(file: str) -> str:
    # Loading importlib.resources would take longer than reading all scripts; the loader reads also
    # from an archive.
    data: bytes = __loader__.get_data(str(_HERE / f"{file}.lua"))  # type: ignore[name-defined]
    return data.decode()
