"""Real shells, controlled by their own commands and by keys in a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

COMPLETIONS = Path(__file__).parents[2] / "completions"

# All special characters of ASCII, and no letter twice.
NASTY = "n !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~z"

# The names that the fake rwq prints: of queues, of items, or, in the third field, of holders. A
# name with a carriage return is printed escaped and must not be offered; any other backslash stands
# for itself.
QUEUES = ("jobs", "mail:in box", "mail:out", "it's", "ümlaut", "C:\\data", NASTY, "x\\ry")
NAMES = QUEUES[:-1]

TAB = "\t"
# Keys that the terminal driver ignores: it may read them before the shell does.
REPORT = "\x1bR"
CLEAR = "\x1bC"


def need(shell: str) -> str:
    """The path of a shell; skips the test if it is missing."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


@dataclass(frozen=True)
class World:
    """A directory to complete in, with a fake `rwq` on PATH.

    Attributes:
        directory: Where the shells run; also their home.
        calls: The file to which the fake appends its arguments.
        variables: The environment of the shells.
    """

    directory: Path
    calls: Path
    variables: dict[str, str]

    def take_calls(self) -> list[list[str]]:
        """Return the arguments of each call of the fake, and forget the calls."""
        if not self.calls.exists():
            return []
        calls = self.calls.read_text().split("\0\n")[:-1]
        self.calls.unlink()
        return [call.split("\0") for call in calls]

    def run(self, command: Sequence[str], **variables: str) -> str:
        """The output of a command; it must succeed and print nothing on stderr."""
        done = subprocess.run(
            command,
            cwd=self.directory,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
        return done.stdout.decode()


def new_world(root: Path) -> World:
    """A world in an empty directory. With NO_SERVER set, the fake fails."""
    directory, programs, calls = root / "home", root / "bin", root / "calls"
    (directory / "some dir").mkdir(parents=True)
    (directory / "notes.txt").touch()
    (directory / "new notes.txt").touch()
    programs.mkdir()
    fake = programs / "rwq"
    fake.write_text(
        "#!/bin/sh\n"
        f"""printf '%s\\0' "$@" >> '{calls}'; echo >> '{calls}'\n"""
        'if [ -n "$NO_SERVER" ]; then echo unreachable >&2; exit 69; fi\n'
        """if [ "$1" = leases ]; then set sed 's/.*/id\tleased\t&\t9\tx/'; else set cat; fi\n"""
        """"$@" <<'END'\n""" + "".join(f"{name}\n" for name in QUEUES) + "END\n"
    )
    fake.chmod(0o755)
    variables = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory),
        "ZDOTDIR": str(directory),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "SERVER": "redis://from.variable/0",
        "INPUTRC": os.devnull,
        "HISTFILE": os.devnull,
    }
    return World(directory, calls, variables)


class Terminal:
    """An interactive shell in a pseudo-terminal, whose command line can be read.

    Args:
        world: Where it runs.
        command: The command that starts it.
        setup: A script to read first. It must bind CLEAR to clearing the line, and REPORT to
            writing the line, followed by NUL, to the pipe `$REPORT`.

    Attributes:
        shell: The path of the shell.
        screen: The output since the last keys, to print if a test fails.
    """

    def __init__(self, world: World, command: Sequence[str], setup: str) -> None:
        self.shell = command[0]
        pipe = world.directory.parent / "report"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        # Open for writing, too: a pipe that no writer has open is always readable.
        self._reports = os.open(pipe, os.O_RDWR)
        script = world.directory.parent / "setup"
        script.write_text(f"{setup}\nprintf '\\0' > $REPORT\n")
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=world.directory,
            env={**world.variables, "REPORT": str(pipe)},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.screen = b""
        self._write(f" source '{script}'\n")
        self._read_report()

    def line_after(self, keys: str) -> str:
        """The line after these keys on an empty line."""
        self.screen = b""
        self._write(CLEAR + keys + REPORT)
        return self._read_report()

    def _read_report(self) -> str:
        report = b""
        while not report.endswith(b"\0"):
            # Unread output would eventually block the shell.
            ready, _, _ = select.select([self._master, self._reports], [], [], 120)
            assert ready, self.screen.decode(errors="replace")
            if self._master in ready:
                self.screen += os.read(self._master, 65536)
            if self._reports in ready:
                report += os.read(self._reports, 65536)
        return report.removesuffix(b"\0").decode()

    def _write(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)
        os.close(self._reports)


@contextmanager
def terminal(world: World, command: Sequence[str], setup: str) -> Iterator[Terminal]:
    """A terminal that is closed at the end."""
    opened = Terminal(world, command, setup)
    try:
        yield opened
    finally:
        opened.close()


class Bash:
    """What bash offers: the function of the script is called directly, or keys are typed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._bash = need("bash")

    def offers(self, line: str, **variables: str) -> list[str]:
        """The words offered for the last word of a line, without their quotes."""
        output = self._world.run(
            [self._bash, "--norc", "-c", _CALL_BASH, "bash", str(COMPLETIONS / "rwq.bash"), line],
            **variables,
        )
        return [word for quoted in output.splitlines() for word in shlex.split(quoted)]

    @contextmanager
    def open(self) -> Iterator[Terminal]:
        """An interactive bash with the script and without the bash-completion package."""
        if int(self._world.run([self._bash, "-c", "echo $BASH_VERSINFO"])) < 4:
            pytest.skip("bash before 4 cannot report the command line")
        setup = _SETUP_BASH.format(script=COMPLETIONS / "rwq.bash")
        with terminal(self._world, [self._bash, "--norc", "--noprofile", "-i"], setup) as opened:
            yield opened


# Calls the function as bash does, and prints the words that it offers.
_CALL_BASH = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"$2"
[[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_rwq rwq "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
"""

_SETUP_BASH = r"""
PS1='$ '
source '{script}'
report() {{ printf '%s\0' "$READLINE_LINE" > $REPORT; }}
bind -x '"\eR": report'
bind '"\eC": kill-whole-line'
"""


class Fish:
    """What fish offers: `complete -C` prints it."""

    def __init__(self, world: World) -> None:
        self._world = world

    @contextmanager
    def open(self, **variables: str) -> Iterator["Fish"]:
        """Start fish with the script. At the end, it must have printed nothing on stderr."""
        with subprocess.Popen(
            [need("fish"), "--no-config", "-c", _RUN_FISH, str(COMPLETIONS / "rwq.fish")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._world.directory,
            env={**self._world.variables, **variables},
            text=True,
            bufsize=1,
        ) as self._process:
            yield self
            _, errors = self._process.communicate()
        assert (self._process.returncode, errors) == (0, "")

    def offers(self, line: str) -> list[str]:
        """The words offered for the last word of a line; fish must be running."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        # fish prints the whole word, including the option that the value belongs to.
        head = re.sub(r"[^=]*$", "", line.split(" ")[-1])
        words = []
        while (row := self._process.stdout.readline()) != "\n":
            assert row, "fish has exited"
            words.append(row.rstrip("\n").split("\t")[0].removeprefix(head))
        return words


# Prints the words for each line of stdin, and an empty line after them.
_RUN_FISH = "source $argv[1]; while read -l line; complete -C $line; echo; end"


class Zsh:
    """What zsh offers, recorded while it completes in a terminal."""

    def __init__(self, world: World, load: str) -> None:
        self._world = world
        self._load = load
        self._offered = world.directory.parent / "offered"

    @contextmanager
    def open(self) -> Iterator[Terminal]:
        """An interactive zsh with the script."""
        setup = _SETUP_ZSH.replace("LOAD", self._load).replace("OFFERED", str(self._offered))
        with terminal(self._world, [need("zsh"), "-f", "-i"], setup) as opened:
            self._terminal = opened
            yield opened

    def offers(self, line: str) -> list[str]:
        """The words offered for the last word of a line; the terminal must be open."""
        self._offered.unlink(missing_ok=True)
        self._terminal.line_after(line + TAB)
        if not self._offered.exists():
            return []
        return self._offered.read_text().splitlines()


# Both ways of loading the script.
ZSH_FPATH = f"fpath=({shlex.quote(str(COMPLETIONS))} $fpath)\nautoload -Uz compinit\ncompinit -D -u"
ZSH_SOURCE = (
    f"autoload -Uz compinit\ncompinit -D -u\nsource {shlex.quote(str(COMPLETIONS / '_rwq'))}"
)

_SETUP_ZSH = r"""
PROMPT='%% ' LISTMAX=1000
setopt no_bang_hist
LOAD
compadd() {
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
        local -a matching
        builtin compadd -O matching "$@"
        (( $#matching )) && print -rl -- $matching >> OFFERED
    fi
    builtin compadd "$@"
}
report() { printf '%s\0' "$BUFFER" > $REPORT }
zle -N report
bindkey -e
bindkey '\eR' report
bindkey '\eC' kill-whole-line
"""
