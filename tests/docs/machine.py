"""The machine that a page is tested on: a home, servers, a bash and a Python of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests import processes
from tests.docs.names import HOSTS
from tests.docs.pages import ROOT
from tests.driver import TIMEOUT_S
from tests.servers import running_server, server_binary
from tests.terminal import new_terminal, watched

COLUMNS = 80
_HOME = "/home/ann"
# Progress on a terminal: what stands before it in the line is gone.
_ERASED = re.compile(r".*(?:\r\x1b\[2K|(?:\r?\n)+\r?\x1b\[1A\x1b\[2K)")

# What follows a step: its exit status.
_END = re.compile(rb"\036(\d+)\n")

_BASH = r"""
status=0
while IFS= read -r -u 9 step; do
    (exit "$status")
    . "$step" </dev/null
    status=$?
    printf '\036%s\n' "$status"
done
"""
_PYTHON = r"""
import os, sys, traceback
from tests.docs.names import use

use()
page = {"__name__": "__page__"}
for step in os.fdopen(9):
    status = 0
    try:
        mode = "single" if step.rstrip().endswith(".single") else "exec"
        exec(compile(open(step.rstrip()).read(), "<page>", mode), page)
    except Exception as error:
        status = 1
        print(*traceback.format_exception_only(error), sep="", end="")
    sys.stdout.flush()
    os.write(1, b"\036%d\n" % status)
"""
# redis-cli and valkey-cli, which know the servers by their names, too.
_CLI = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
host = "localhost"
if "-h" in words:
    at = words.index("-h")
    host = words[at + 1]
    del words[at : at + 2]
os.execv({program!r}, [sys.argv[0], "-s", json.loads(os.environ[{hosts!r}])[host], *words])
"""


class Ran(NamedTuple):
    """What a step came to."""

    status: int
    output: str


class Interpreter:
    """A process that runs the steps of a page, one after the other, on a terminal."""

    def __init__(self, command: list[str], variables: dict[str, str], home: Path) -> None:
        self._home = home
        self._steps = 0
        reads, self._writes = os.pipe()
        outer, terminal = new_terminal(COLUMNS, 50)
        settings = termios.tcgetattr(terminal)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        self._terminal = watched(outer)
        # A session of its own, without a controlling terminal: nothing can ask a question.
        self._process = subprocess.Popen(
            ["bash", "-c", 'exec 9<&"$0" "$@"', str(reads), *command],
            env=variables,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            pass_fds=[reads],
            start_new_session=True,
        )
        os.close(reads)
        os.close(terminal)

    def run(self, source: str, suffix: str) -> Ran:
        self._steps += 1
        step = self._home.parent / f"step-{self._steps}{suffix}"
        step.write_text(source, "utf-8")
        os.write(self._writes, f"{step}\n".encode())
        begin = len(self._terminal.written)
        deadline = time.monotonic() + TIMEOUT_S
        while (end := _END.search(self._terminal.written, begin)) is None:
            printed = f"it printed {self._terminal.written[begin:]!r}"
            assert time.monotonic() < deadline, f"{source!r} takes too long; {printed}"
            assert self._terminal.read(), f"{source!r} ended the shell; {printed}"
        text = _ERASED.sub("", self._terminal.written[begin : end.start()].decode())
        return Ran(int(end[1]), text.replace(str(self._home), _HOME))

    def close(self) -> None:
        """End it, and what it started in the background."""
        os.close(self._writes)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._terminal.child.close()


class Machine:
    """Runs the steps of one page. The interpreters start when they are first needed."""

    def __init__(self, home: Path, variables: dict[str, str], stack: ExitStack) -> None:
        self._home, self._variables, self._stack = home, variables, stack
        self._interpreters: dict[str, Interpreter] = {}

    def bash(self, command: str) -> Ran:
        """Type a command into the page's shell."""
        return self._interpreter("bash", ["bash", "-c", _BASH]).run(f"{command}\n", ".sh")

    def python(self, source: str, *, shows_value: bool = False) -> Ran:
        """Run statements in the page's Python; or one, as its prompt does."""
        interpreter = self._interpreter("python", [sys.executable, "-u", "-c", _PYTHON])
        return interpreter.run(source, ".single" if shows_value else ".exec")

    def _interpreter(self, name: str, command: list[str]) -> Interpreter:
        if name not in self._interpreters:
            self._interpreters[name] = Interpreter(command, self._variables, self._home)
            self._stack.callback(self._interpreters[name].close)
        return self._interpreters[name]


@contextmanager
def machine(hosts: set[str]) -> Iterator[Machine]:
    """A machine while the block runs."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rwq-docs-")))
        home, programs = place / "home", place / "bin"
        home.mkdir()
        programs.mkdir()
        servers = {name: stack.enter_context(running_server()) for name in sorted(hosts)}
        variables = {
            "HOME": str(home),
            "USER": "ann",
            "RWQ_SESSION": "4711",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.defpath]),
            "PYTHONPATH": str(ROOT),
            HOSTS: json.dumps({name: str(server.socket) for name, server in servers.items()}),
        }
        processes.write_program(programs / "rwq", before="tests.docs.names:use")
        for name in ("valkey-cli", "redis-cli"):
            program = server_binary().with_name(name)
            found = str(program) if program.exists() else shutil.which(name)
            if found:
                _program(
                    programs / name,
                    _CLI.format(python=sys.executable, program=found, hosts=HOSTS),
                )
        if jq := shutil.which("jq"):
            # Older ones know no NO_COLOR.
            _program(programs / "jq", f'#!/bin/sh\nexec {jq} --monochrome-output "$@"\n')
        stack.callback(_stop_local, programs / "rwq", variables)
        yield Machine(home, variables, stack)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _stop_local(rwq: Path, variables: dict[str, str]) -> None:
    """Stop the server of `local:`, if the page has started it."""
    if Path(variables["HOME"], ".local", "state", "rwq", "local").exists():
        subprocess.run(
            [rwq, "local", "stop"],
            env=variables,
            capture_output=True,
            timeout=TIMEOUT_S,
            # It may be stopped already.
            check=False,
        )
