"""The Lua scripts: what their headers say, what they include, and that each one is used."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import rwq_cli.core
from rwq_cli.core.lua import load_script

CORE = Path(rwq_cli.core.__file__).parent
VERBS = sorted((CORE / "lua" / "ops").glob("*.lua"))
SHARED = sorted((CORE / "lua" / "lib").glob("*.lua"))
SCRIPTS = VERBS + SHARED

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
each_verb = pytest.mark.parametrize("script", VERBS, ids=[script.stem for script in VERBS])


@each_script
def test_a_script_begins_with_what_it_does(script: Path) -> None:
    header = re.match(r"(--.*\n)+", script.read_text("utf-8"))
    assert header is not None
    first = header[0].splitlines()[0]
    assert re.fullmatch(r"-- [A-Z].*[.:]", first) or len(header[0].splitlines()) > 1


@each_verb
def test_a_script_documents_its_arguments_and_what_it_returns(script: Path) -> None:
    header = re.match(r"(--.*\n)+", script.read_text("utf-8"))
    assert header is not None
    assert "-- arg 1" in header[0]
    assert "-- Returns" in header[0]
    body = script.read_text("utf-8")[header.end() :]
    used = {int(number) for number in re.findall(r"\barg\((\d+)\)", body)}
    used |= {int(number) for number in re.findall(r"\bargs_from\((\d+)\)", body)}
    documented = {int(number) for number in re.findall(r"^-- arg (\d+)", header[0], re.MULTILINE)}
    assert used == documented


@each_script
def test_a_script_names_what_it_uses_of_what_is_shared(script: Path) -> None:
    where = {
        name: shared.stem
        for shared in SHARED
        for name in re.findall(r"^local function (\w+)", shared.read_text("utf-8"), re.MULTILINE)
    }
    text = script.read_text("utf-8")
    code = re.sub(r"--.*", "", text)
    used = {where[name] for name in re.findall(r"\w+", code) if name in where}
    line = re.search(r"^-- Uses: (.+)$", text, re.MULTILINE)
    named = set(line[1].split(", ")) if line else set()
    assert named == used - {"prelude", script.stem}


@each_verb
def test_a_script_says_names_and_not_numbers(script: Path) -> None:
    text = script.read_text("utf-8")
    assert "KEYS" not in text
    assert "ARGV" not in text


@each_verb
def test_no_script_can_search_all_keys(script: Path) -> None:
    called = set(re.findall(r"redis\.p?call\(\s*'(\w+)'", load_script(script.stem).text))
    assert called & {"KEYS", "SCAN", "FLUSHDB", "FLUSHALL", "RENAME"} == set()


def test_every_script_is_used() -> None:
    text = "".join(module.read_text("utf-8") for module in CORE.rglob("*.py"))
    for script in VERBS:
        assert f'"{script.stem}"' in text, script.stem


def test_the_scripts_are_found_as_a_package_finds_them() -> None:
    for folder, scripts in (("ops", VERBS), ("lib", SHARED)):
        found = {entry.name for entry in (files("rwq_cli.core.lua") / folder).iterdir()}
        assert {script.name for script in scripts} <= found
    with pytest.raises(FileNotFoundError):
        load_script("no_such_script")
