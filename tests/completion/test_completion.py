"""Completion as Typer's scripts do it, in real shells."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq
from tests.processes import write_program
from tests.terminal import Terminal

COMPLETIONS = Path(__file__).parents[2] / "completions"
SCRIPTS = {"bash": "rwq.bash", "zsh": "_rwq", "fish": "rwq.fish"}
# Each prints the words that it offers for the line in LINE, one a line.
OFFER = {
    "bash": """
        source "$SCRIPT"
        COMP_LINE=$LINE COMP_POINT=${#LINE}
        # As readline splits: at blanks, and at : and = besides.
        read -ra COMP_WORDS <<<"$(sed 's/[:=]/ & /g' <<<"$LINE")"
        [[ $LINE != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _rwq_completion rwq
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "fish": "source $SCRIPT; complete -C $LINE",
}


def shell_of(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture
def world(rwq: Rwq, foreign: Foreign) -> dict[str, str]:
    """A server with queues, items, holders and contexts, and `rwq` on PATH."""
    foreign.waiting(b"w-1", b"w 2")
    foreign.leased(b"l-1", holder=b"rwq:ann@host:7")
    foreign.raw.set("jobs:item:w-1", '{"tenant": {"id": 3}}')
    foreign.data(b"o-1")
    assert rwq("rm", "o-1", "--yes").code == 0
    for name in (b"mail:in", b"mail:out", b"mail:$(touch ran)", b"mail:\\$(touch ran)"):
        Foreign(foreign.raw, name).waiting(b"1")
    assert rwq("context", "set", "prod", "-u", "redis://db1").code == 0
    programs = rwq.home / "bin"
    programs.mkdir()
    write_program(programs / "rwq")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**rwq.variables, "PATH": path, "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def offers(shell: str, line: str, world: dict[str, str], home: Path) -> list[str]:
    """The words that a shell offers, without their descriptions."""
    if shell == "zsh":
        return typed_in_zsh(line, world, home)
    done = subprocess.run(
        [shell_of(shell), "--norc" if shell == "bash" else "--no-config", "-c", OFFER[shell]],
        env={**world, "SCRIPT": str(COMPLETIONS / SCRIPTS[shell]), "LINE": line},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [row.split("\t")[0] for row in done.stdout.split("\n") if row]


_ZSH = """
autoload -Uz compinit; compinit -D -u; source $SCRIPT
compadd() { if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
  local -a m; builtin compadd -O m "$@"; (( $#m )) && print -rl -- $m >> offered; fi
  builtin compadd "$@" }
done-now() { touch done }
zle -N done-now; bindkey -e; bindkey '\\eR' done-now; touch ready
"""


def typed_in_zsh(line: str, world: dict[str, str], home: Path) -> list[str]:
    """Type a line and a Tab into a zsh on a terminal, and record what it offers."""
    (home / "setup").write_text(_ZSH)
    for name in ("offered", "done", "ready"):
        (home / name).unlink(missing_ok=True)
    terminal = Terminal(
        [shell_of("zsh"), "-f", "-i"],
        {**world, "SCRIPT": str(COMPLETIONS / SCRIPTS["zsh"])},
        directory=home,
    )
    try:
        for keys, result in ((" source ./setup\n", "ready"), (f"{line}\t\x1bR", "done")):
            terminal.child.send(keys)
            terminal.until(lambda result=result: terminal.read() and (home / result).exists())
    finally:
        terminal.close()
    offered = home / "offered"
    return offered.read_text().splitlines() if offered.exists() else []


@pytest.mark.ci
@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_tab_offers_commands_options_and_names(
    shell: str, world: dict[str, str], rwq: Rwq
) -> None:
    # bash splits at : and =, and replaces only the last piece.
    is_split = shell == "bash"
    option = "" if is_split else "--output="
    waiting = {"w-1", r"w\ 2" if is_split else "w 2"}
    lines = {
        "rwq compl": {"complete", "completion"},
        "rwq clean ": {"light", "deep"},
        "rwq ls --ta": {"--tail"},
        "rwq ls a": {"abandoned", "all"},
        "rwq -o js": {"json", "jsonl"},
        "rwq ls --output=js": {f"{option}json", f"{option}jsonl"},
        "rwq ls -q mail:": {"in", "out"} if is_split else {"mail:in", "mail:out"},
        "rwq ls -q mail:o": {"out"} if is_split else {"mail:out"},
        "rwq complete -q jobs w": waiting,
        'rwq complete -q jobs "w': {"w-1", "w 2"},
        "rwq touch -q jobs ": {"l-1"},
        "rwq complete -q jobs --owner rwq": {"rwq:ann@host:7"},
        "rwq -c ": {"prod"},
        "rwq help exit": {"exit-codes"},
        "rwq check --warn w": {"waiting="},
        "rwq undo ": {"1"},
        "rwq ls -q jobs --where te": {"tenant", "tenant.id"},
    }
    # What a line offers is up to rwq; what a shell does with it, to these.
    theirs = ("rwq clean ", "rwq ls --output=js", "rwq ls -q mail:o", "rwq complete -q jobs w")
    tried = lines if shell == "bash" else theirs
    offered = {line: set(offers(shell, line, world, rwq.home)) for line in tried}
    assert offered == {line: lines[line] for line in tried}
    assert not (rwq.home / "ran").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rwq ls --output=js", ["--output=json", "--output=jsonl"]),
        ("rwq -o js", ["json", "jsonl"]),
        ("rwq help exit", ["exit-codes"]),
    ],
)
def test_whole_words_are_offered(rwq: Rwq, line: str, words: list[str]) -> None:
    variables = {"_RWQ_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    text = rwq.process(variables=variables).text
    assert [word for word in words if f'"{word}"' not in text] == []


def test_a_silent_server_offers_and_says_nothing(world: dict[str, str], rwq: Rwq) -> None:
    dead = {**world, "RWQ_URL": "redis://127.0.0.1:1/0"}
    assert offers("bash", "rwq ls -q m", dead, rwq.home) == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_scripts_are_those_that_are_installed(rwq: Rwq, shell: str) -> None:
    script = (COMPLETIONS / SCRIPTS[shell]).read_text()
    assert rwq("completion", shell).as_tuple() == (0, script, "")
    installed = rwq.process("completion", shell, "--install", variables={"HOME": str(rwq.home)})
    names = [line.split(": ")[0].split()[-1] for line in installed.notes.splitlines()[:2]]
    path, *start = [Path(name.replace("~", str(rwq.home))) for name in names]
    assert path.read_text().strip() == script.strip()
    # What loads it is this line alone, once.
    again = rwq.process("completion", shell, "--install", variables={"HOME": str(rwq.home)})
    assert f"installed {path}\n" in again.notes
    assert [file.read_text().count(str(path)) for file in start] == [1] * len(start)
    assert [file.read_text().count("\n") for file in start] == [1] * len(start)
