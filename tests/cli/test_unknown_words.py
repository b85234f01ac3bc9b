"""Words that rwq does not know: its own word for them, and never a destructive one by likeness."""

import json
import re
import shlex
from string import ascii_lowercase
from typing import Any

import pytest
import typer

from rwq_cli.cli.app import COMMANDS, build_root
from rwq_cli.cli.unknown_words import SYNONYM_HINTS, unknown_command
from tests.all_commands import all_commands
from tests.driver import Rwq

ELSEWHERE = (
    *("delete", "peek", "put", "push", "pop", "ack", "nack", "requeue", "empty", "describe"),
    *("reserve", "enqueue", "dequeue", "cancel", "retry", "len", "count", "list", "get", "drain"),
    *("flush", "clear", "watch", "status", "pause", "resume"),
)
ALL = {info.path: info for info in all_commands()}
DESTRUCTIVE = {path for path, info in ALL.items() if info.manual.destructive}
WITHOUT_ARGUMENTS = [
    path
    for path, info in ALL.items()
    if not any(each.param_type_name == "argument" for each in info.command.params)
]
# A command line in a hint ends where its prose goes on.
COMMAND = re.compile(r"rwq ((?:clean )?[a-z]+)((?: (?:-[a-zA-Z-]+|QUEUE|waiting|paused))*)")


def hint(word: str) -> str:
    """The hint for a word that is no command."""
    context: Any = typer.Context(build_root(), info_name="rwq")
    return unknown_command(context, word).hint or ""


@pytest.mark.parametrize("word", ELSEWHERE)
def test_a_word_of_another_program_gets_our_word(rwq: Rwq, word: str) -> None:
    assert not set(SYNONYM_HINTS) & set(COMMANDS)
    result = rwq(word, "17", "-q", "jobs")
    said = f"rwq: error: no such command {word!r}; {SYNONYM_HINTS[word]}\n"
    assert result.as_tuple() == (2, "", said)
    assert rwq(word.upper()).notes == said.replace(f"'{word}'", f"'{word.upper()}'")


@pytest.mark.parametrize("word", SYNONYM_HINTS)
def test_hints_name_commands_and_options_that_exist(word: str) -> None:
    commands = COMMAND.findall(SYNONYM_HINTS[word])
    assert commands or SYNONYM_HINTS[word] == "rwq --version"
    words = {(path, word) for path, line in commands for word in line.split() if word[0] == "-"}
    options = {
        (path, name)
        for path, _ in commands
        for option in ALL[path].command.params
        for name in (*option.opts, *option.secondary_opts)
    }
    assert words <= options


def slips(word: str) -> set[str]:
    """The word with one letter left out, doubled, swapped with the next, or another."""
    found = set()
    for at in range(len(word)):
        head, letter, tail = word[:at], word[at], word[at + 1 :]
        found |= {head + tail, head + letter + letter + tail, head + tail[:1] + letter + tail[1:]}
        found |= {head + other + tail for other in ascii_lowercase}
    return found - {word, ""} - set(COMMANDS) - set(SYNONYM_HINTS)


def test_a_destructive_command_is_never_suggested() -> None:
    words = [word for name in DESTRUCTIVE for word in slips(name)]
    hints = {word: hint(word).removeprefix("see rwq --help") for word in words}
    paths = {word: {path for path, _ in COMMAND.findall(hints[word])} for word in words}
    assert {word: paths[word] for word in words if paths[word] & DESTRUCTIVE} == {}


@pytest.mark.parametrize("path", sorted({*WITHOUT_ARGUMENTS} - {"demo", "context list"}))
def test_a_queue_as_an_argument_gets_the_option(bare_rwq: Rwq, path: str) -> None:
    result = bare_rwq(*path.split(), "it's")
    text = result.text if path == "check" else result.notes
    assert result.code == (3 if path == "check" else 2)
    assert f"{path} takes no arguments; did you mean: rwq {path} -q " in text
    assert shlex.split(text.strip().split("mean: ")[1])[-1] == "it's"


def test_only_the_queue_is_repeated(bare_rwq: Rwq) -> None:
    said = "rwq: error: stats takes no arguments; did you mean: rwq stats -q jobs -q mail\n"
    lines = ("-u redis://:secret@host stats jobs mail", "stats --deep jobs mail -o csv")
    assert [bare_rwq(*line.split()).notes for line in lines] == [said] * 2
    assert json.loads(bare_rwq("-o", "json", "stats", "jobs").err) == {
        "error": "stats takes no arguments",
        "code": "usage",
        "hint": "did you mean: rwq stats -q jobs",
    }
