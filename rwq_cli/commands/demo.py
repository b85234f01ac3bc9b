"""`rwq demo`: a tour of the main commands on a throwaway server."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from rwq_cli.cli.manual import UNWRITTEN
from rwq_cli.commands import Settings, command
from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import raising_on_terminate
from rwq_cli.local.server import throwaway
from rwq_cli.output.console import apply_style


class TourStep(NamedTuple):
    """A shell command of the tour, with the text printed above it and the pause before it."""

    text: str
    command: str
    wait_s: float = 0
    fails: bool = False


_ITEMS = "resize cat.png\nresize dog.png\nresize eel.png\nresize fox.png\n"
_STEPS = (
    TourStep("A file with four items:", "cat items.txt"),
    TourStep("Add them. Each line is also the item's ID:", "rwq add -f items.txt --id-from line"),
    TourStep("The waiting items, next first:", "rwq ls"),
    TourStep("Lease the first one for an hour:", "rwq lease --for 1h"),
    TourStep(
        "A worker leases the next one for a second, and is killed:",
        "sh -c 'rwq lease --for 1s -o ids; kill -9 $$'",
        fails=True,
    ),
    TourStep("The leases:", "rwq leases"),
    TourStep("A second later, the worker's lease has expired:", "rwq leases", wait_s=1.1),
    TourStep("A light clean looks twice, a second apart, and returns the item:", "rwq clean light"),
    TourStep("The item waits again, behind the others:", "rwq show 'resize dog.png'"),
    TourStep("Complete the item that was leased first:", "rwq complete 'resize cat.png'"),
    TourStep("The counts of the queue:", "rwq stats"),
)
# The exit codes of a shell and of a process that wrote to a closed stdout.
_CLOSED_STDOUT = (128 + signal.SIGPIPE, -signal.SIGPIPE)


@command(partial=UNWRITTEN)
def demo(settings: Settings) -> None:
    """Run the main commands on a throwaway server and show their output, in a few seconds.

    rwq demo
    """
    environment, is_bold = settings.environment, settings.colour
    with raising_on_terminate(replaces=True), throwaway(environment.variables) as server:
        server.ensure_running()
        directory = server.directory / "demo"
        variables = _prepare(directory, settings, server.url)
        for step in _STEPS:
            prompt = apply_style(f"$ {step.command}", "bold") if is_bold else f"$ {step.command}"
            time.sleep(step.wait_s)
            text = fill(step.text, environment.width)
            environment.stdout.write(f"\n{text}\n{prompt}\n".encode())
            environment.stdout.flush()
            exit_code = subprocess.run(
                ["sh", "-c", step.command],
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=environment.stdout,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
            if exit_code in _CLOSED_STDOUT:
                raise BrokenPipeError
            if exit_code and not step.fails:
                raise LocalServerError(f"the demo's {step.command} failed with {exit_code}")
    settings.out.text("\nThe throwaway server and its files are gone.\n")


def _prepare(directory: Path, settings: Settings, url: str) -> dict[str, str]:
    program = directory / "bin" / "rwq"
    program.parent.mkdir(parents=True)
    # The commands print tables, even if the tour is piped or written to a file.
    look = ("--output", "table", "--color", "always" if settings.colour else "never")
    words = shlex.join([sys.executable, "-m", "rwq_cli", *look])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o700)
    (directory / "items.txt").write_text(_ITEMS)
    variables = settings.environment.variables
    return {
        **{name: value for name, value in variables.items() if not name.startswith("RWQ_")},
        "RWQ_URL": url,
        # Hides the user's contexts.
        "XDG_CONFIG_HOME": str(directory),
        "RWQ_QUEUE": "images",
        "PATH": f"{program.parent}{os.pathsep}{variables.get('PATH', os.defpath)}",
        "COLUMNS": str(settings.environment.width),
    }
