"""`python -m rwq_cli.completion completions/`: write the scripts into a directory."""

import sys
from pathlib import Path

from rwq_cli.completion.scripts import FILE_NAMES, script_for
from rwq_cli.completion.spec import collect


def write_all(directory: Path) -> None:
    """Write every script into an existing directory."""
    spec = collect()
    for shell, name in FILE_NAMES.items():
        (directory / name).write_text(script_for(shell, spec), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rwq_cli.completion DIRECTORY")
    write_all(Path(sys.argv[1]))
