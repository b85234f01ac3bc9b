"""The scripts in real shells."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from rwq_cli.cli.app import COMMANDS
from rwq_cli.cli.choosing import SELECTABLE
from rwq_cli.commands.ls import Which
from rwq_cli.completion.__main__ import write_all
from rwq_cli.completion.scripts import Shell
from rwq_cli.completion.spec import CompletionCommand, collect
from rwq_cli.input.records import InputFormat
from rwq_cli.output.options import OutputFormat
from tests.completion.shells import (
    COMPLETIONS,
    NAMES,
    NASTY,
    TAB,
    ZSH_FPATH,
    ZSH_SOURCE,
    Bash,
    Fish,
    Terminal,
    World,
    Zsh,
    need,
    new_world,
)
from tests.conftest import Foreign
from tests.driver import Rwq

WITH_L = [name for name in COMMANDS if name.startswith("l")]
STATES_WITH_A = [state for state in SELECTABLE if state.startswith("a")]
SPEC = collect()


class Completer(Protocol):
    """A shell that completes lines."""

    def offers(self, line: str) -> list[str]: ...


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return new_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def forget_calls(world: World) -> None:
    """Forget the calls of earlier tests."""
    world.take_calls()


@pytest.fixture(scope="module", params=["bash", "fish", "zsh"])
def shell(request: pytest.FixtureRequest, world: World) -> Iterator[Completer]:
    """Each shell; zsh finds its script in fpath."""
    if request.param == "bash":
        yield Bash(world)
    elif request.param == "fish":
        with Fish(world).open() as fish:
            yield fish
    else:
        zsh = Zsh(world, ZSH_FPATH)
        with zsh.open():
            yield zsh


@pytest.fixture(scope="module", params=["bash", "zsh"])
def screen(request: pytest.FixtureRequest, world: World) -> Iterator[Terminal]:
    """A shell to type into."""
    opening = Bash(world) if request.param == "bash" else Zsh(world, ZSH_FPATH)
    with opening.open() as opened:
        yield opened


def test_the_scripts_in_the_repository_match_the_commands(tmp_path: Path) -> None:
    write_all(tmp_path)
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_text() for file in COMPLETIONS.iterdir()}
    assert made == kept, "run: python -m rwq_cli.completion completions/"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rwq ", list(COMMANDS)),
        ("rwq l", WITH_L),
        ("rwq -q jobs l", WITH_L),
        ("rwq -v --url=redis://h:1/2 -o json --tls-ca ca.pem l", WITH_L),
        ("rwq -vq jobs l", WITH_L),
        ("rwq --queue=jobs l", WITH_L),
        ("rwq --nonsense l", WITH_L),
        ("rwq -- l", WITH_L),
        ("rwq --vers", ["--version"]),
        # The queue's name is that of a command.
        ("rwq -q add ls --ta", ["--tail"]),
        ("rwq -q jobs ls --ta", ["--tail"]),
        ("rwq ls -q jobs --url x --ta", ["--tail"]),
        ("rwq ls --queue=jobs waiting --ta", ["--tail"]),
        ("rwq clean ", ["light", "deep"]),
        ("rwq clean -q light d", ["deep"]),
        ("rwq clean light --gr", ["--grace"]),
        ("rwq -q x clean -u y light -q z --gr", ["--grace"]),
        ("rwq ls ", list(Which)),
        ("rwq ls -n 5 a", [which for which in Which if which.startswith("a")]),
        ("rwq ls -- ", list(Which)),
        ("rwq ls -- -", []),
        ("rwq ls waiting l", []),
        ("rwq ls -o ", list(OutputFormat)),
        ("rwq -o j", ["json", "jsonl"]),
        ("rwq ls --output=j", ["json", "jsonl"]),
        ("rwq --output=j", ["json", "jsonl"]),
        ("rwq add --format ", list(InputFormat)),
        ("rwq ls --state=a", STATES_WITH_A),
        ("rwq ls --state waiting --state a", STATES_WITH_A),
        ("rwq completion ", list(Shell)),
        ("rwq local st", ["start", "stop", "status"]),
        ("rwq doctor --only d", ["duplicated", "due"]),
        ("rwq doctor --skip=held,due,ev", ["evicting-server"]),
        ("rwq help s", [*(name for name in COMMANDS if name.startswith("s")), "states"]),
        ("rwq -v help ex", ["export", "exit-codes"]),
        ("rwq help clean ", ["light", "deep"]),
        ("rwq help ls ", []),
        ("rwq man local st", ["start", "stop", "status"]),
        ("rwq man --in", ["--install"]),
        ("rwq wait --fields wait", ["waiting", "waited_seconds"]),
        ("rwq wait --fields queue,wait", ["waiting", "waited_seconds"]),
        ("rwq wait --fields=wait", ["waiting", "waited_seconds"]),
        ("rwq queues --sort wai", ["waiting"]),
        ("rwq queues --sort=wai", ["waiting"]),
        ("rwq clean light --fields act", ["action"]),
        ("rwq clean light --sort act", []),
        ("rwq --fields wait", []),
        # Data, numbers, durations and URLs cannot be guessed, and are not files.
        ("rwq add --id n", []),
        ("rwq add n", []),
        ("rwq lease -n n", []),
        ("rwq lease --for=n", []),
        ("rwq -u n", []),
        ("rwq nonsense l", []),
    ],
)
def test_known_words_are_offered_without_starting_rwq(
    shell: Completer, world: World, line: str, offered: list[str]
) -> None:
    found = shell.offers(line)
    # Some shells offer the whole list.
    assert sorted(word.rpartition(",")[2] for word in found) == sorted(offered)
    assert world.take_calls() == []


OWN_COMMANDS = [command for command in SPEC.commands if not command.is_subject]


@pytest.mark.parametrize("command", OWN_COMMANDS, ids=lambda known: "-".join(known.path))
def test_every_long_option_is_offered_without_starting_rwq(
    shell: Completer, world: World, command: CompletionCommand
) -> None:
    found = shell.offers(" ".join(("rwq", *command.path, "--")))
    wanted = {
        name
        for option in (*command.options, *SPEC.common)
        for name in option.names
        if name.startswith("--")
    }
    assert set(found) == wanted
    assert world.take_calls() == []


@pytest.mark.parametrize(
    ("line", "server"),
    [
        ("rwq -q ", []),
        ("rwq ls -q ", []),
        ("rwq ls --queue ", []),
        ("rwq ls --queue=", []),
        ("rwq -q jobs stats -q ", []),
        ("rwq -u redis://h:1/2 ls -q ", ["--url", "redis://h:1/2"]),
        ("rwq ls --url=unix:///x --queue=", ["--url", "unix:///x"]),
        ("rwq -uredis://h/ ls -q ", ["--url", "redis://h/"]),
        ("rwq -vu redis://h/ clean light -q ", ["--url", "redis://h/"]),
        ("rwq -u 'redis://h/?a=b c' ls -q ", ["--url", "redis://h/?a=b c"]),
        ("rwq -u $SERVER ls -q ", ["--url", "redis://from.variable/0"]),
        ("rwq ls --url=$SERVER -q ", ["--url", "redis://from.variable/0"]),
        (
            "rwq -u rediss://h/ ls --tls-ca my.pem --tls-insecure -q ",
            ["--url", "rediss://h/", "--tls-ca", "my.pem", "--tls-insecure"],
        ),
    ],
)
def test_queue_names_come_from_the_server_on_the_line(
    shell: Completer, world: World, line: str, server: list[str]
) -> None:
    assert sorted(shell.offers(line)) == sorted(NAMES)
    (call,) = world.take_calls()
    # Only fish gives the long name of an option that was typed with the short one.
    assert call[:3] == ["queues", "-o", "ids"]
    assert ["--url" if word == "-u" else word for word in call[3:]] == server


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("rwq show ", "ls all -o ids -n 50"),
        ("rwq complete -q jobs ", "ls processing -o ids -n 50 --queue jobs"),
        ("rwq -q jobs lease --id=", "ls waiting -o ids -n 50 --queue jobs"),
        ("rwq kick -q $SERVER a b ", "ls buried -o ids -n 50 --queue redis://from.variable/0"),
        ("rwq -u redis://h/ -q a rm -q b:c x ", "ls all -o ids -n 50 --queue b:c --url redis://h/"),
        ("rwq touch -q a -q b:c\\\\d ", r"ls leased -o ids -n 50 --queue b:c\d"),
        ("rwq leases --holder ", "leases -o plain -n 50"),
        ("rwq complete -q jobs --owner=", "leases -o plain -n 50 --queue jobs"),
        ("rwq queues ", "queues -o ids"),
        ("rwq -c ", "context list -o ids"),
        ("rwq -u redis://h/ -q a ls --context=", "context list -o ids"),
        ("rwq -u redis://h/ context use ", "context list -o ids"),
        ("rwq mv -q jobs --to ", "queues -o ids"),
    ],
)
def test_ids_and_holders_come_from_the_queue_on_the_line(
    shell: Completer, world: World, line: str, call: str
) -> None:
    assert sorted(shell.offers(line)) == sorted(NAMES)
    (made,) = world.take_calls()
    long_names = {"-q": "--queue", "-u": "--url"}
    assert " ".join(long_names.get(word, word) for word in made) == call


def test_rwq_prints_names_where_the_scripts_read_them(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    foreign.leased(b"2", holder=b"rwq:ann@host:7")
    foreign.abandoned(b"3")
    assert rwq("ls", "all", "-o", "ids", "-n", "50").lines == ["1", "2", "3"]
    leases = rwq("leases", "-o", "plain", "-n", "50").text.splitlines()
    # An abandoned item has no holder.
    assert [line.split("\t")[2] for line in leases] == ["", "rwq:ann@host:7"]
    for name in ("dev", "prod"):
        assert rwq("context", "set", name, "-u", "local:").code == 0
    assert rwq("context", "list", "-o", "ids").lines == ["dev", "prod"]


def test_undo_files_are_offered_without_starting_rwq(shell: Completer, world: World) -> None:
    directory = world.directory / ".local/state/rwq/undo"
    directory.mkdir(parents=True, exist_ok=True)
    names = (
        "20261122T080000.123456Z-rm-jobs-17.jsonl",
        "20261121T080000.1Z-rm-jobs-1.jsonl.undone",
    )
    for name in names:
        (directory / name).touch()
    found = shell.offers("rwq undo ")
    assert [word for word in found if word.startswith("/")] == [str(directory / names[0])]
    assert world.take_calls() == []


def test_commands_on_the_line_are_not_run(shell: Completer, world: World) -> None:
    substitution = "(touch ran)" if isinstance(shell, Fish) else "$(touch ran)"
    assert shell.offers(f"rwq -u {substitution} ls -q ") == []
    assert shell.offers(f"rwq -q {substitution} show ") == []
    assert shell.offers(f"rwq -q {substitution} ls --ta") == ["--tail"]
    assert world.take_calls() == []
    assert not (world.directory / "ran").exists()


def test_the_zsh_script_can_be_sourced(world: World) -> None:
    zsh = Zsh(world, ZSH_SOURCE)
    with zsh.open():
        assert sorted(zsh.offers("rwq l")) == sorted(WITH_L)
        assert zsh.offers("rwq -q jobs ls --ta") == ["--tail"]
        assert sorted(zsh.offers("rwq ls -q ")) == sorted(NAMES)


def test_nothing_is_offered_or_printed_if_the_server_does_not_answer(world: World) -> None:
    assert Bash(world).offers("rwq ls -q ", NO_SERVER="1") == []
    with Fish(world).open(NO_SERVER="1") as fish:
        assert fish.offers("rwq ls -q ") == []
    assert len(world.take_calls()) == 2


@pytest.mark.parametrize(
    "options", ["set -u", "set -f", "set -o posix", "IFS=q", "COMP_WORDBREAKS=' '"]
)
def test_bash_completes_with_other_shell_options(world: World, options: str) -> None:
    def ask(line: str) -> str:
        setup = f"source {COMPLETIONS}/rwq.bash; {options}; COMP_LINE=$1 COMP_POINT=${{#1}}"
        answer = '_rwq rwq; printf "%s\\n" "${COMPREPLY[@]}"'
        return world.run([need("bash"), "--norc", "-c", f"{setup}; {answer}", "bash", line])

    assert ask("rwq -q jobs l") == "lease\nls\nleases\nlocal\n"
    whole = options.startswith("COMP")
    assert ask("rwq --output=j") == (
        "--output=json\n--output=jsonl\n" if whole else "json\njsonl\n"
    )
    assert ask("rwq -q mail:i") == ("mail:in\\ box\n" if whole else "in\\ box\n")


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("rwq comp", "rwq complet"),
        ("rwq sho", "rwq show "),
        ("rwq -q x cl", "rwq -q x clean "),
        ("rwq -oc", "rwq -ocsv "),
        ("rwq --output=c", "rwq --output=csv "),
        ("rwq -vqjo", "rwq -vqjobs "),
        ("rwq ls -q m", "rwq ls -q mail:"),
        ("rwq ls -q mail:i", r"rwq ls -q mail:in\ box "),
        (r"rwq ls -q mail:in\ ", r"rwq ls -q mail:in\ box "),
        ('rwq ls -q "mail:i', 'rwq ls -q "mail:in box" '),
        ("rwq ls -q 'mail:i", "rwq ls -q 'mail:in box' "),
        ("rwq ls --queue=m", "rwq ls --queue=mail:"),
        ("rwq ls --queue=mail:i", r"rwq ls --queue=mail:in\ box "),
        ("rwq show mail:i", r"rwq show mail:in\ box "),
        ("rwq complete --owner=mail:i", r"rwq complete --owner=mail:in\ box "),
        ("rwq help exit", "rwq help exit-codes "),
        ("rwq ls -q it", r"rwq ls -q it\'s "),
        ("rwq ls -q C:", r"rwq ls -q C:\\data "),
        ("rwq ls -q ü", "rwq ls -q ümlaut "),
        ("rwq add -f not", "rwq add -f notes.txt "),
        ("rwq add -f new", r"rwq add -f new\ notes.txt "),
        ('rwq add -f "new', 'rwq add -f "new notes.txt" '),
        ("rwq add --file=new", r"rwq add --file=new\ notes.txt "),
        ("rwq --password-file not", "rwq --password-file notes.txt "),
        ("rwq add new", "rwq add new"),
        ("rwq local start some", r"rwq local start some\ dir/"),
        ("rwq ls -q jobs > not", "rwq ls -q jobs > notes.txt "),
    ],
)
def test_the_line_after_tab(screen: Terminal, typed: str, line: str) -> None:
    assert screen.line_after(typed + TAB) == line


@pytest.mark.parametrize(
    "start", ["-q ", "-q '", '-q "', "-q", "--queue=", "--queue='", '--queue="']
)
def test_a_queue_name_of_special_characters_is_quoted(
    screen: Terminal, world: World, start: str
) -> None:
    written = screen.line_after(f"rwq ls {start}n{TAB}")
    program = "printf '%s\\n' " + written.removeprefix("rwq ls ")
    read = world.run([screen.shell, "-c", program])
    head, gap, _quote = start.partition(" ")
    assert read == (f"{head}\n" if gap else head.rstrip("'\"")) + f"{NASTY}\n"
