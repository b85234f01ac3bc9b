"""Starts rwq, and programs of the tests, as processes."""

import fcntl
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "rwq_cli")
ROOT = Path(__file__).parent.parent
# After that it hangs; far more than any command takes, so that a busy machine fails no test.
TIMEOUT_S = 120.0


def start(
    command: Sequence[str | bytes], *, terminal: bool = False, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a process as `subprocess.Popen` does; it may be a module of the tests."""
    if terminal:
        options.update(start_new_session=True, preexec_fn=_take_terminal)
    env = {**options.pop("env"), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=env, **options)


def _take_terminal() -> None:
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


def write_program(path: Path, *, before: str | None = None) -> None:
    """Write a program that scripts run as `rwq`; `before`, as in `module:function`, comes first."""
    lines = [f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(ROOT)!r})"]
    if before is not None:
        module, _, function = before.partition(":")
        lines += [f"from {module} import {function}", f"{function}()"]
    lines += ["from rwq_cli.__main__ import main", "main()", ""]
    path.write_text("\n".join(lines))
    path.chmod(0o755)
