"""The Lua scripts: what their headers document, what they include, and that each one is used."""

import re
from pathlib import Path

import pytest

import rwq_cli.core
from rwq_cli.core import WorkQueue
from rwq_cli.core.handle import WORDS_MAX
from rwq_cli.core.lua import all_files, header_of, libraries_of, load_script

CORE = Path(rwq_cli.core.__file__).parent
LUA = CORE / "lua"
# Their texts by their names.
SCRIPTS = {name: (LUA / f"{name}.lua").read_text("utf-8") for name in all_files()}
OPERATIONS = {name: text for name, text in SCRIPTS.items() if name.startswith("ops/")}
LIBRARIES = {name: text for name, text in SCRIPTS.items() if name.startswith("lib/")}
# The commands that write.
WRITES = re.compile(
    r"'((?:SET|SETNX|MSET|MSETNX|DEL|RENAMENX|LPUSH|RPUSH|LPOP|RPOP|LREM|LSET|ZADD|ZREM"
    r"|ZREMRANGEBYSCORE|HSET|HDEL|BITFIELD|PEXPIRE|PERSIST))'"
)


def functions() -> dict[str, str]:
    """The library of each function that is shared."""
    return {
        function: library
        for library, text in LIBRARIES.items()
        for function in re.findall(r"^(?:local )?function (\w+)", text, re.MULTILINE)
    }


def included(name: str) -> set[str]:
    """The libraries that a script includes, and those that these include."""
    return set(libraries_of(name))


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - {"ops/access"}))
def test_every_command_that_writes_is_declared(name: str) -> None:
    """With its libraries, whose functions write for it, an operation asks for all that it runs."""
    files = [name, *libraries_of(name)]
    declared = {
        command
        for file in files
        for group in header_of(file).writes.values()
        for commands in group.values()
        for command in commands
    }
    used = set(WRITES.findall(re.sub(r"--.*", "", OPERATIONS[name])))
    assert used <= declared


def test_a_script_includes_the_libraries_that_it_uses() -> None:
    library_of = functions()
    missing, needless = set(), set()
    for name, text in SCRIPTS.items():
        words = library_of.keys() & re.findall(r"\w+", re.sub(r"--.*", "", text))
        used = {library_of[word] for word in words} - {"lib/prelude", name}
        missing |= {(name, library) for library in used - included(name)}
        files = [file for file in header_of(name).includes if not header_of(file).args]
        needless |= {(name, file) for file in files if not used & {file, *included(file)}}
    assert (missing, needless) == (set(), set())


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_script_searches_all_keys(name: str) -> None:
    called = set(re.findall(r"'([A-Z]+)'", load_script(Path(name).stem).text))
    assert called & {"KEYS", "SCAN", "FLUSHDB", "FLUSHALL"} == set()


def test_more_words_than_lua_unpacks_are_refused(queue: WorkQueue) -> None:
    words = [b"x"] * WORDS_MAX
    with pytest.raises(ValueError, match="7001 words"):
        queue.run("states", *words[2:], in_main=1, in_processing=0, digests_too=False)
    with pytest.raises(ValueError, match="8000 words"):
        queue.run("access", *[b"x"] * 7998, marks=b"", to=b"")
