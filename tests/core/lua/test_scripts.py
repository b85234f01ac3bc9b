"""The Lua scripts: what their headers document, what they include, and that each one is used."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import rwq_cli.core
from rwq_cli.core.lua import INCLUDES, load_script

CORE = Path(rwq_cli.core.__file__).parent
LUA = CORE / "lua"
# Their texts by their names, as in the table of what they include.
OPERATIONS = {f"ops/{path.stem}": path.read_text("utf-8") for path in (LUA / "ops").glob("*.lua")}
LIBRARIES = {path.stem: path.read_text("utf-8") for path in (LUA / "lib").glob("*.lua")}
SCRIPTS = {**OPERATIONS, **LIBRARIES}


def header(text: str) -> str:
    """The comment that a script begins with."""
    found = re.match(r"(--.*\n)*", text)
    return found[0] if found else ""


def names_in(text: str) -> set[str]:
    """The names in the code of a script."""
    return set(re.findall(r"\w+", re.sub(r"--.*", "", text)))


def functions() -> dict[str, str]:
    """The library of each function that is shared."""
    return {
        function: library
        for library, text in LIBRARIES.items()
        for function in re.findall(r"^(?:local )?function (\w+)", text, re.MULTILINE)
    }


def included(name: str) -> Iterator[str]:
    """The libraries that a script includes, and those that these include."""
    for library in INCLUDES.get(name, ()):
        yield library
        yield from included(library)


def test_every_script_begins_with_what_it_does() -> None:
    for name, text in SCRIPTS.items():
        assert re.match(r"-- [A-Z]", header(text)), name


def test_every_operation_documents_its_arguments() -> None:
    for name, text in OPERATIONS.items():
        code = "".join((text, *(LIBRARIES[library] for library in set(included(name)))))
        code = re.sub(r"--.*", "", code)
        used = {int(number) for number in re.findall(r"\bargs?(?:_from)?\((\d+)\)", code)}
        lines = re.findall(r"^-- arg (\d+)(?:\.\.(\d+))?", header(text), re.MULTILINE)
        documented = {n for first, last in lines for n in range(int(first), int(last or first) + 1)}
        assert used - documented == set(), name


def test_every_operation_documents_what_it_returns() -> None:
    missing = [name for name, text in OPERATIONS.items() if "-- Returns" not in header(text)]
    assert missing == []


def test_a_script_includes_the_libraries_that_it_uses() -> None:
    library_of = functions()
    for name, text in SCRIPTS.items():
        used = {library_of[word] for word in names_in(text) if word in library_of}
        used -= {"prelude", name}
        assert used <= set(included(name)), name
        for library in INCLUDES.get(name, ()):
            assert used & {library, *included(library)}, (name, library)


def test_operations_name_their_keys_and_arguments() -> None:
    for name, text in OPERATIONS.items():
        assert names_in(text) & {"KEYS", "ARGV"} == set(), name


def test_no_script_searches_all_keys() -> None:
    for name in OPERATIONS:
        called = set(re.findall(r"'([A-Z]+)'", load_script(Path(name).stem).text))
        assert called & {"KEYS", "SCAN", "FLUSHDB", "FLUSHALL"} == set(), name


def test_every_operation_is_run_somewhere() -> None:
    text = "".join(module.read_text("utf-8") for module in CORE.rglob("*.py"))
    assert [name for name in OPERATIONS if f'"{Path(name).stem}"' not in text] == []


def test_the_scripts_are_found_in_an_installed_package() -> None:
    package = files("rwq_cli.core.lua")
    assert {entry.name for entry in (package / "lib").iterdir()} >= {f"{n}.lua" for n in LIBRARIES}
    assert {f"ops/{entry.name}" for entry in (package / "ops").iterdir()} >= {
        f"{name}.lua" for name in OPERATIONS
    }
    with pytest.raises(FileNotFoundError):
        load_script("no_such_script")
