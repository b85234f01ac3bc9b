"""The help: every command has examples that work and its exit codes; near misses are suggested."""

import re
import shlex

import pytest

from rwq_cli.cli.app import SECTIONS
from rwq_cli.cli.options import GLOBAL_NAMES
from rwq_cli.core.clock import Clock
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.help.topics import TOPICS
from tests.all_commands import CommandInfo, all_commands
from tests.conftest import Foreign
from tests.driver import Rwq

ALL = all_commands()


def help_of(command: CommandInfo, rwq: Rwq) -> str:
    """The help of a command, on a screen of 80 columns."""
    code, text = rwq.on_screen(*command.path.split(), "--help", columns=80)
    assert code == 0
    return text.decode()


def test_every_command_has_its_usage_options_examples_and_exit_codes_on_a_screen(rwq: Rwq) -> None:
    for command in ALL:
        path, manual = command.path, command.manual
        text = help_of(command, rwq)
        lines, shown = text.splitlines(), re.sub(r"\s+", " ", text)
        assert text.startswith(f"Usage: rwq {path} ")
        assert all(f"\n  {example}\n" in text for example in manual.examples[:2]), path
        for code, meaning in manual.all_exits.items():
            assert f"{int(code)} {meaning}" in shown, path
        # A command for monitors has their codes alone.
        usual = {0, 130} if manual.monitors else {0, 2, 69, 130}
        assert usual <= {*map(int, manual.all_exits)}, path
        assert "rwq help options" in shown, path
        assert len(lines) <= 40, path
        prose = [line for line in lines if line.strip() not in manual.examples]
        assert [line for line in prose if len(line) > 80] == [], path
        context = command.command.make_context("x", ["--help"], resilient_parsing=True)
        # COMMAND of `work` is said by its usage and its help.
        for parameter in (each for each in command.command.params if not each.hidden):
            record = parameter.get_help_record(context)
            assert record is not None, (path, parameter.name)
            assert record[1].strip(), (path, parameter.name)
            is_common = parameter.name in GLOBAL_NAMES
            assert is_common or record[0].split(",")[0].split()[0] in text, path


# A command that stops its worker.
STOPPING = "printf '#!/bin/sh\\nkill -TERM $PPID\\n'"
# Examples that need a file, another program or a terminal, and what stands for it.
PREPARED = {
    "rwq add -q jobs -f urls.txt --id-from sha256": "printf 'http://a\\nhttp://b\\n' > urls.txt",
    "rwq add -q jobs --at 08:00 -f urls.txt": "echo http://a > urls.txt",
    "rwq add -q '{jobs:1}' -q '{jobs:2}' -f urls.txt --id-from sha256": "echo http://a > urls.txt",
    "jq -c '{id: .key, data: .}' dump.json | rwq add -q jobs --format jsonl": (
        'jq() { echo \'{"id": "k", "data": {}}\'; }'
    ),
    "rwq wait -q jobs --timeout 1h": "rwq complete -q jobs 1 2 3 4f2a9c",
    "rwq wait -q jobs --id 4f2a9c --timeout 10m": "rwq complete -q jobs 4f2a9c",
    "rwq import -q jobs jobs.jsonl": "rwq export -q jobs > jobs.jsonl",
    "rwq import -q jobs --on-conflict skip jobs.jsonl": "rwq export -q jobs > jobs.jsonl",
    "rwq undo --dry-run": "rwq rm -q jobs --yes 1",
    "rwq undo --yes": "rwq rm -q jobs --yes 1",
    "rwq undo --yes 12": "rwq rm -q jobs --yes 1; mv .local/state/rwq/undo/1.jsonl "
    ".local/state/rwq/undo/12.jsonl",
    "rwq undo --redo --dry-run": "rwq rm -q jobs --yes 1; rwq undo --yes",
    "rwq complete -q jobs 4f2a9c --mine": (
        "rwq release -q jobs 4f2a9c; rwq lease -q jobs --id 4f2a9c"
    ),
    "rwq mv -q jobs --to jobs --to-context new --all --follow --yes": (
        'rwq context set new -u "$RWQ_URL?db=1"'
    ),
    **dict.fromkeys(
        ("rwq diff jobs jobs-copy", "rwq diff jobs jobs-copy -o jsonl"),
        "rwq export -q jobs | rwq import -q jobs-copy -",
    ),
    "rwq diff jobs --to-context new": (
        'rwq context set new -u "$RWQ_URL?db=1"; rwq export -q jobs | rwq import -c new -q jobs -'
    ),
    "rwq edit -q jobs 4f2a9c": "export EDITOR=true",
    "EDITOR='code --wait' rwq edit -q jobs 4f2a9c": "ln -s /bin/true bin/code",
    "rwq edit -q jobs 4f2a9c -f fixed.json": "echo '{}' > fixed.json",
    "rwq kick -q jobs 4f2a9c": "rwq bury -q jobs 4f2a9c",
    "rwq complete -q jobs 4f2a9c --result answer.json --result-ttl 1d": "echo 1 > answer.json",
    **dict.fromkeys(
        (
            "rwq result -q jobs 4f2a9c",
            "rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json",
            "rwq result -q jobs 4f2a9c -o json",
        ),
        "rwq complete -q jobs --rejected 4f2a9c",
    ),
    "echo - | rwq show -q jobs -": "rwq add -q jobs --id - x",
    **dict.fromkeys(
        (
            "rwq work -q jobs -- ./resize",
            "rwq work -q high -q low -j 4 --max-time 10m --joblog jobs.tsv -- ./resize",
            "rwq work -q jobs --batch 100 -- ./resize",
            "rwq work -q jobs --dry-run -- ./resize",
        ),
        f"{STOPPING} > resize; chmod +x resize; rwq add -q high x",
    ),
    "rwq work -q jobs --input arg --drain -- curl -fsS '{data}'": "ln -s /bin/true bin/curl",
    "rwq work -q jobs --input file --result -- identify '{file}'": (
        f"{STOPPING} > bin/identify; chmod +x bin/identify"
    ),
    "rwq work -q jobs --task-dir ./tasks": (
        f"mkdir tasks; {STOPPING} > tasks/greet; chmod +x tasks/greet; "
        "rwq purge -q jobs --yes; rwq add -q jobs '[\"greet\"]'"
    ),
    "rwq lease -q high -q normal -q low --wait -o jsonl": "rwq add -q normal x",
    "rwq lease -q jobs --id 4f2a9c": "rwq release -q jobs 4f2a9c",
    "rwq context show": 'rwq context set a -u "$RWQ_URL"; rwq context use a; unset RWQ_URL',
    "rwq context use prod": "rwq context set prod -u redis://db1",
    "rwq context use -": "; ".join(
        f"rwq context set {name} -u redis://{name}; rwq context use {name}" for name in "ab"
    ),
    "rwq context rm old": "rwq context set old -u redis://db1",
    "rwq context rm test-1 test-2": (
        "rwq context set test-1 -u redis://db1; rwq context set test-2 -u redis://db1"
    ),
    **dict.fromkeys(
        (
            "rwq context show prod -o json",
            "rwq context set prod --name-color red --protect type --read-only",
            "rwq context set prod --unset queue --no-read-only",
            "rwq context check prod -q jobs",
        ),
        'rwq context set prod -u "$RWQ_URL" -q jobs',
    ),
}
EXAMPLES = [
    example
    for command in ALL
    # Those of `top` are tested on a terminal.
    if command.path.split()[0] not in ("local", "demo", "completion", "top")
    for example in command.manual.examples
]


VARIABLES = {"RWQ_QUEUE": ""}


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_works(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    foreign.waiting(b"1", b"2", b"3")
    foreign.leased(b"4f2a9c", holder=b"rwq:ann@host:1")
    if not any(word in example for word in ("touch", "--force", "leases", "doctor")):
        foreign.raw.delete("jobs:lease:4f2a9c", "jobs:leased_by_session:4f2a9c")
    before = PREPARED.get(example, "")
    line = f"{example} --grace 0" if example.startswith("rwq clean") else example
    monkeypatch.chdir(rwq.home)
    code = 0
    if any(each in line for each in ("--every", "--watch", "--follow")):
        code = 130
        monkeypatch.setattr(Clock, "sleep", press_ctrl_c)
    if is_simple(before) and is_simple(line) and "EDITOR" not in line:
        if before:
            assert rwq(*shlex.split(before)[1:], variables=VARIABLES).code == 0
        result = rwq(*shlex.split(line)[1:], variables=VARIABLES)
    else:
        line = line.replace("--follow", "")
        code = 0
        script = f"set -euo pipefail; {before or ':'}; {line}"
        result = rwq.shell(script, VARIABLES)
    assert (result.code, "error:" in result.notes) == (code, False), result.notes


def press_ctrl_c(_clock: Clock, seconds: float) -> None:
    """In the pause between two rounds; a grace period of 0 is none."""
    if seconds:
        raise KeyboardInterrupt


def is_simple(line: str) -> bool:
    """Whether it is one run of rwq, which needs no shell; nothing at all is simple, too."""
    return not line or (line.startswith("rwq ") and not set(line) & set("|<>;&$"))


class TestRoot:
    def test_every_command_is_listed_with_its_summary_on_40_lines(self, rwq: Rwq) -> None:
        code, screen = rwq.on_screen("--help", columns=80)
        lines = screen.decode().splitlines()
        assert code == 0
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 80
        for heading, commands in SECTIONS.items():
            first, *others = (f"{name:10}  {summary}" for name, summary in commands.items())
            assert f"{heading:16}  {first}" in lines
            assert {f"{'':18}{line}" for line in others} <= {*lines}
        for topic in TOPICS:
            assert topic in screen.decode()
        for status in ExitStatus:
            assert f"{int(status)} {status.summary}" in " ".join(screen.decode().split())
