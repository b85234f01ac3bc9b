"""What may import what: no circles, one direction between rooms, and a core that stands alone.

An import counts wherever it stands: at the top of a module, inside a function, or under
TYPE_CHECKING. Not counted is the table of commands in `cli.app`, which are loaded by their names.
"""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import rwq_cli

ROOT = Path(rwq_cli.__file__).parent

# Each room may import those above it. A room is a folder, or a module that stands alone.
ROOMS = (
    "core.errors",
    "core.clock",
    "core.health",
    "core.model",
    "core.keys",
    "core.batches",
    "core.lua",
    "core.server",
    "core.handle",
    "core.state",
    "core.inspect",
    "core.items",
    "core.repair",
    "core.work",
    "core.acting",
    "core.queue",
    "core.public",
    "core",
    "exit_codes",
    "hidden_module",
    "descriptors",
    "processes",
    "environment",
    "output",
    "service",
    "input",
    "local",
    "contexts",
    "undo",
    "work",
    "views",
    "topics",
    "cli",
    "completion",
    "top",
    "commands",
)


@cache
@cache
def modules() -> dict[str, Path]:
    """Every module, by its name without `rwq_cli.`; the package itself is `""`."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported_names(path: Path) -> set[str]:
    """The full names of the modules that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if own_name(full) in modules() else str(node.module))
    return names


def own_name(full: str) -> str:
    """The name without `rwq_cli.`, as in `ROOMS`; of the package itself, `""`."""
    return full.removeprefix("rwq_cli").removeprefix(".")


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules of this package that each module imports."""
    graph = {}
    for module, path in modules().items():
        names = {own_name(name) for name in imported_names(path) if name.startswith("rwq_cli")}
        graph[module] = frozenset(names & modules().keys() - {module})
    return graph


def room_of(module: str) -> str:
    """The room of a module: the longest of `ROOMS` that its name begins with; `""` for none."""
    matching = (room for room in ROOMS if f"{module}.".startswith(f"{room}."))
    return max(matching, key=len, default="")


def test_no_modules_import_each_other() -> None:
    assert len(modules()) > 80
    assert "core.inspect.counting" in imports()["core.queue"], "inside of a function"
    TopologicalSorter(imports()).prepare()


def test_every_module_is_in_a_room() -> None:
    outside = {name for name in modules() if not room_of(name)}
    assert outside == {"", "__main__"}


def test_imports_between_rooms_go_one_way() -> None:
    against = set()
    for module, others in imports().items():
        if module in ("", "__main__"):
            continue
        rank = ROOMS.index(room_of(module))
        against |= {
            (module, other) for other in others if other and ROOMS.index(room_of(other)) > rank
        }
    assert against == set()


def test_only_the_entry_point_imports_the_program() -> None:
    assert {module for module, others in imports().items() if "cli.program" in others} == {
        "__main__"
    }


def test_the_core_imports_only_redis_and_itself() -> None:
    allowed = {*sys.stdlib_module_names, "redis", "hiredis"}
    core = {name: path for name, path in modules().items() if room_of(name).startswith("core")}
    assert [
        f"{module} imports {name}"
        for module, path in core.items()
        for name in imported_names(path)
        if name.partition(".")[0] not in allowed and not f"{name}.".startswith("rwq_cli.core.")
    ] == []


def test_the_help_of_all_commands_loads_nothing_slow() -> None:
    """redis takes as long to load as everything else, and `--help` imports every command."""
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('redis', 'rich.console', 'rich.live', 'textual')))\n"
        "from rwq_cli.cli.app import COMMANDS, load_command\n"
        "for name in COMMANDS:\n"
        "    load_command(name)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
