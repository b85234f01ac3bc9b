"""The shape of the core: what it may import, and how its scripts are written."""

import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import rwq_cli.core
from rwq_cli.core import errors
from rwq_cli.core.lua import load_script

CORE = Path(rwq_cli.core.__file__).parent
MODULES = sorted(CORE.rglob("*.py"))
VERBS = sorted((CORE / "lua" / "ops").glob("*.lua"))
SHARED = sorted((CORE / "lua" / "lib").glob("*.lua"))
SCRIPTS = VERBS + SHARED

each_module = pytest.mark.parametrize(
    "module", MODULES, ids=[str(module.relative_to(CORE)) for module in MODULES]
)
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
each_verb = pytest.mark.parametrize("script", VERBS, ids=[script.stem for script in VERBS])


def imported_modules(module: Path) -> set[str]:
    """The full names of all that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.add(node.module or "")
    return names


def test_there_is_a_core() -> None:
    assert len(MODULES) > 15
    assert len(VERBS) > 8


@each_module
def test_it_imports_the_standard_library_redis_and_itself(module: Path) -> None:
    for name in imported_modules(module):
        top = name.partition(".")[0]
        allowed = (
            top in sys.stdlib_module_names
            or top in ("redis", "hiredis")
            or (name + ".").startswith("rwq_cli.core.")
        )
        assert allowed, name


@each_module
def test_it_neither_prints_nor_exits(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"print", "input", "exit", "quit", "sys.exit", "os._exit"}
    assert "sys" not in imported_modules(module)


def test_it_works_without_the_command_lines_libraries() -> None:
    program = (
        "import sys\n"
        "for name in ('typer', 'rich', 'click', 'typing_extensions'):\n"
        "    sys.modules[name] = None\n"
        "import rwq_cli.core\n"
        "from rwq_cli.core import lua\n"
        "assert lua.load_script('add').sha1\n"
        "print(sorted(name for name in sys.modules if name.startswith('rwq_cli.')\n"
        "             and not name.startswith('rwq_cli.core')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CORE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[]\n", "")


def test_all_that_it_offers_is_there_and_sorted() -> None:
    assert rwq_cli.core.__all__ == sorted(rwq_cli.core.__all__, key=lambda n: (not n.isupper(), n))
    for name in rwq_cli.core.__all__:
        assert hasattr(rwq_cli.core, name)


def test_every_error_has_a_word_of_its_own() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RwqError)
    ]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes) > 10
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


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
    text = "".join(module.read_text("utf-8") for module in MODULES)
    for script in VERBS:
        assert f'"{script.stem}"' in text, script.stem


def test_the_scripts_are_found_as_a_package_finds_them() -> None:
    for folder, scripts in (("ops", VERBS), ("lib", SHARED)):
        found = {entry.name for entry in (files("rwq_cli.core.lua") / folder).iterdir()}
        assert {script.name for script in scripts} <= found
    with pytest.raises(FileNotFoundError):
        load_script("no_such_script")


def test_every_module_has_a_docstring() -> None:
    for module in MODULES:
        text = module.read_text("utf-8")
        if text or module.name != "__init__.py":
            assert ast.get_docstring(ast.parse(text)), module.relative_to(CORE)
