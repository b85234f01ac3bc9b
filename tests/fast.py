"""`python -m tests.fast [PATH…]`: what finds most faults soonest, and the tests of files at hand.

At hand is what is named, or else what git says is changed: tests, for a module of rwq the test file
or folder with its name, and for a command the cells of its row in the registry. What a verb lacks
in the registry is always said. More words go to pytest.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.running import FAST
from tests.mutants.tree import ROOT

_PROTOCOL = (*FAST["model"], *FAST["states"])
_REGISTRY = ("tests/test_verbs.py",)
# What tests all verbs, each in cells of its own.
_OF_VERBS = (
    *("tests/cli/test_contract.py", "tests/cli/test_exit_codes.py", "tests/cli/test_choosing.py"),
    *("tests/cli/test_help.py", "tests/output/test_formats.py", "tests/core/test_dry_runs.py"),
    "tests/kinds",
)


def _changed() -> list[Path]:
    words = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    lines = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(line[3:]) for line in lines.splitlines()]


def _tests_of(path: Path) -> list[str]:
    if path.parts[:1] == ("tests",):
        return [str(path)] if path.name.startswith("test_") or (ROOT / path).is_dir() else []
    places = Path("tests", *path.with_suffix("").parts[1:])
    wanted = places.with_name(f"test_{places.name.removeprefix('_')}.py"), places
    return [str(place) for place in wanted if (ROOT / place).exists()]


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    paths = [Path(word) for word in sys.argv[1:] if not word.startswith("-")] or _changed()
    at_hand = dict.fromkeys(test for path in paths for test in _tests_of(path))
    if verbs := [path.stem for path in paths if path.match("rwq_cli/commands/*.py")]:
        others = " or ".join(Path(test).name for test in _OF_VERBS)
        options += ["-k", f"{' or '.join(verbs)} or not ({others})"]
        at_hand |= dict.fromkeys(_OF_VERBS)
    # Alone, it computes: more processes than cores would only start.
    processes = "4" if at_hand else "2"
    sys.exit(pytest.main(["-n", processes, *options, *_PROTOCOL, *_REGISTRY, *at_hand]))
