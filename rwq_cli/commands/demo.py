"""`rwq demo`: the main job from end to end, on a throw-away server."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from rwq_cli.cli.app import new_app
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import LocalServerError
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.local import throwaway
from rwq_cli.output.report import Report, Text

app = new_app()

MANUALS = {"demo": Manual(examples=("rwq demo",))}

# How sh tells that a command's stdout was closed.
_CLOSED_STDOUT = 128 + signal.SIGPIPE
_ITEMS = b"resize cat.png\nresize dog.png\nresize eel.png\nresize fox.png\n"

# What is said, what is run, and how long to wait before.
_STEPS: tuple[tuple[str, str, float], ...] = (
    ("Four items are in a file. The ID of each shall be its own line.", "cat items.txt", 0),
    ("", "rwq add -f items.txt --id-from line", 0),
    ("What waits, next first:", "rwq ls", 0),
    ("Take one by hand, for an hour:", "rwq lease --for 1h", 0),
    (
        "A worker takes the next one for a second, and is killed:",
        "sh -c 'rwq lease --for 1s -o ids; kill -9 $$'",
        0,
    ),
    ("Who holds what for how long:", "rwq leases", 0),
    ("A little later its lease has ended; the item is abandoned:", "rwq leases", 1.1),
    ("A light clean looks twice, a second apart, and returns it:", "rwq clean light", 0),
    ("It waits again, behind the others:", "rwq show 'resize dog.png'", 0),
    ("Finish the one that was taken by hand:", "rwq complete 'resize cat.png'", 0),
    ("And the queue in numbers:", "rwq stats", 0),
)


@app.command(help="Show the main job from end to end on a throw-away server, in a few seconds.")
def demo(ctx: typer.Context) -> Report:
    settings: Settings = ctx.obj
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with throwaway() as server:
        socket = server.ensure_running()
        here = _make_place(Path(server.directory))
        variables = {
            **settings.environment.variables,
            "RWQ_URL": f"unix://{socket}",
            "RWQ_QUEUE": "images",
            "PATH": f"{here / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        for name in ("REDIS_URL", "RWQ_PASSWORD"):
            variables.pop(name, None)
        for said, line, wait_s in _STEPS:
            time.sleep(wait_s)
            _show(settings, said, line)
            code = subprocess.run(
                ["sh", "-c", line],
                cwd=here,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=settings.environment.stdout,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
            if code in (_CLOSED_STDOUT, -signal.SIGPIPE):
                raise BrokenPipeError
            # The worker that kills itself is the one step that is meant to fail.
            if code and "kill -9" not in line:
                raise LocalServerError(f"the demo's {shlex.quote(line)} failed with {code}")
    return Text("\nThat was a throw-away server; nothing of it is left.\n")


def _show(settings: Settings, said: str, line: str) -> None:
    out = settings.environment.stdout
    prompt = f"$ {line}"
    if settings.environment.stdout_is_terminal and settings.colour:
        prompt = f"\x1b[1m{prompt}\x1b[0m"
    out.write(f"\n{said}\n{prompt}\n".encode() if said else f"\n{prompt}\n".encode())
    out.flush()


def _make_place(directory: Path) -> Path:
    """A folder with the items and an `rwq` that is this one, whatever PATH says."""
    here = directory / "demo"
    (here / "bin").mkdir(parents=True)
    (here / "items.txt").write_bytes(_ITEMS)
    program = here / "bin" / "rwq"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rwq_cli "$@"\n')
    program.chmod(0o700)
    return here


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise typer.Exit(int(ExitStatus.INTERRUPTED))
