"""The help: every command has examples that work and its exit codes; near misses are suggested."""

import re
import shlex
from collections.abc import Callable

import pytest
import typer

from rwq_cli.cli.app import SECTIONS
from rwq_cli.cli.options import COMMON_NAMES
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.topics import TOPICS
from tests import processes
from tests.all_commands import CommandInfo
from tests.conftest import Foreign
from tests.driver import Rwq, configure
from tests.verbs import COMMANDS, LINES


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_help_of_a_command_is_whole_on_a_screen(rwq: Rwq, command: CommandInfo) -> None:
    path, manual = command.path, command.manual
    code, screen = rwq.on_screen(*path.split(), "--help", columns=80)
    text = screen.decode()
    assert code == 0, path
    lines, flat = text.splitlines(), re.sub(r"\s+", " ", text)
    assert text.startswith(f"Usage: rwq {path} ")
    assert all(f"\n  {example}\n" in text for example in manual.examples[:2]), path
    exits = [f"{int(status)} {meaning}" for status, meaning in manual.all_exits.items()]
    assert [line for line in exits if line not in flat] == []
    # A command for monitors has their codes alone.
    usual = {0, 130} if manual.monitors else {0, 2, 69, 130}
    assert usual <= {*map(int, manual.all_exits)}, path
    assert "rwq help options" in flat, path
    assert len(lines) <= 40, path
    prose = [line for line in lines if line.strip() not in manual.examples]
    assert [line for line in prose if len(line) > 80] == [], path
    context = typer.Context(command.command)
    # COMMAND of `work` is said by its usage and its help.
    parameters = [parameter for parameter in command.command.params if not parameter.hidden]
    records = {item.name: item.get_help_record(context) or ("-", "") for item in parameters}
    assert [name for name, (_, meaning) in records.items() if not meaning.strip()] == []
    options = {name: names.split(",")[0].split()[0] for name, (names, _) in records.items()}
    assert {name for name in options if options[name] not in text} <= COMMON_NAMES


@pytest.mark.parametrize("words", [("kick", "--help"), ("help", "states"), ("help", "ls")])
def test_help_is_as_narrow_as_the_terminal(rwq: Rwq, words: tuple[str, ...]) -> None:
    examples = str([command.manual.examples for command in COMMANDS.values()])
    _, screen = rwq.on_screen(*words, columns=40)
    lines = [line for line in screen.decode().splitlines() if line.strip() not in examples]
    assert [line for line in lines if len(line) > 40] == []


# A command that stops its worker.
STOPPING = "#!/bin/sh\nkill -TERM $PPID\n"
# The files that examples name.
FILES = {
    "urls.txt": "http://a\n",
    "fixed.json": "{}",
    "answer.json": "1",
    "bin/code": "#!/bin/sh\n",
    "dump.json": "",
    "bin/jq": '#!/bin/sh\necho \'{"id": "k", "data": {}}\'\n',
    "bin/curl": "#!/bin/sh\n",
    "bin/identify": STOPPING,
    "resize": STOPPING,
    "tasks/greet": STOPPING,
}
# What comes before some: another state of the item, something to undo.
_REMOVED = "rwq rm -q jobs --yes 1"
_RELEASED = "rwq release -q jobs 4f2a9c"
_REJECTED = "rwq complete -q jobs --rejected 4f2a9c"
PREPARED = {
    "rwq wait -q jobs --timeout 1h": "rwq complete -q jobs 1 2 3 4f2a9c",
    "rwq wait -q jobs --id 4f2a9c --timeout 10m": "rwq complete -q jobs 4f2a9c",
    **dict.fromkeys(("rwq undo --dry-run", "rwq undo --yes"), _REMOVED),
    "rwq undo --yes 12": f"{_REMOVED}; cd .local/state/rwq/undo; mv 1.jsonl 12.jsonl",
    "rwq complete -q jobs 4f2a9c --mine": f"{_RELEASED}; rwq lease -q jobs --id 4f2a9c",
    "rwq lease -q jobs --id 4f2a9c": _RELEASED,
    "rwq kick -q jobs 4f2a9c": "rwq bury -q jobs 4f2a9c",
    "rwq result -q jobs 4f2a9c": _REJECTED,
    "rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json": _REJECTED,
    "rwq result -q jobs 4f2a9c -o json": _REJECTED,
    "echo - | rwq show -q jobs -": "rwq add -q jobs --id - x",
    "rwq work -q jobs --task-dir ./tasks": "rwq purge -q jobs --yes; rwq add -q jobs '[\"greet\"]'",
    **dict.fromkeys(
        ("rwq diff jobs jobs-copy", "rwq diff jobs jobs-copy -o jsonl"),
        "rwq export -q jobs | rwq import -q jobs-copy -",
    ),
    "rwq diff jobs --file jobs.jsonl": "rwq export -q jobs > jobs.jsonl",
    "rwq diff jobs --to-context new": "rwq export -q jobs | rwq import -c new -q jobs -",
    "rwq context show": "unset RWQ_URL",
    "rwq context use -": "rwq context use old",
}


def is_simple(line: str) -> bool:
    """True for nothing at all, and for one run of rwq that needs no shell and starts nothing."""
    is_run = line.startswith("rwq ") and not line.startswith("rwq work")
    return not line or (is_run and not set(line) & set("|<>;&$"))


# In CI also those that need a shell, and so several processes.
EXAMPLES = [
    pytest.param(
        example,
        marks=[] if is_simple(example) and is_simple(PREPARED.get(example, "")) else pytest.mark.ci,
    )
    for path in LINES
    # A server of its own, and the shell that it is for.
    if path.split()[0] not in ("local", "completion")
    for example in COMMANDS[path].manual.examples
]


@pytest.fixture
def world(rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> Rwq:
    """What examples speak of: items, contexts, files and programs; none has a terminal."""
    foreign.waiting(b"1", b"2", b"3")
    foreign.leased(b"4f2a9c", holder=b"rwq:ann@host:1")
    for name in (b"high", b"normal"):
        Foreign(foreign.raw, name).waiting(b"x")
    url = rwq.variables["RWQ_URL"]
    names = {"prod": url, "new": f"{url}?db=1", "old": url, "test-1": url, "test-2": url}
    contexts = "".join(f'[contexts.{name}]\nurl = "{url}"\n' for name, url in names.items())
    configure(rwq.home, f'current = "prod"\n{contexts}')
    for name, text in FILES.items():
        (rwq.home / name).parent.mkdir(exist_ok=True)
        (rwq.home / name).write_text(text)
        (rwq.home / name).chmod(0o755)
    processes.write_program(rwq.home / "bin" / "rwq")
    (rwq.home / "jobs.jsonl").write_bytes(rwq("export", "-q", "jobs").out)
    monkeypatch.chdir(rwq.home)
    rwq.variables = {**rwq.variables, "RWQ_QUEUE": "", "EDITOR": "true"}
    return rwq


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_works(
    world: Rwq, foreign: Foreign, pauses: Callable[..., None], example: str
) -> None:
    if not any(word in example for word in ("touch", "--force", "leases", "doctor")):
        foreign.raw.delete("jobs:lease:4f2a9c", "jobs:leased_by_session:4f2a9c")
    before = PREPARED.get(example, "")
    line = f"{example} --grace 0" if example.startswith("rwq clean") else example
    code = 0
    if any(word in line for word in ("--every", "--watch", "--follow", "rwq tail")):
        code = 130
        pauses()
    if is_simple(before) and is_simple(line):
        if before:
            assert world(*shlex.split(before)[1:]).code == 0
        result = world(*shlex.split(line)[1:])
    else:
        result = world.shell(f"set -euo pipefail; {before or ':'}; {line}")
    assert (result.code, "error:" in result.notes) == (code, False), result.notes


def test_all_commands_are_listed_on_40_lines(rwq: Rwq) -> None:
    code, screen = rwq.on_screen("--help", columns=80)
    lines = screen.decode().splitlines()
    assert code == 0
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    entries = [
        f"{'' if at else heading:16}  {name:10}  {summary}"
        for heading, commands in SECTIONS.items()
        for at, (name, summary) in enumerate(commands.items())
    ]
    text = " ".join(screen.decode().split())
    exits = [f"{int(status)} {status.summary}" for status in ExitStatus]
    assert [entry for entry in entries if entry not in lines] == []
    assert [words for words in (*TOPICS, *exits) if words not in text] == []


def test_the_help_is_the_same_without_docstrings(rwq: Rwq) -> None:
    """Python drops them with -OO."""
    words = ("clean", "light", "--help")
    assert rwq.process(*words, variables={"PYTHONOPTIMIZE": "2"}) == rwq(*words)
