"""The page about a new verb is true: what it says makes one, and nothing else is touched."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.mutants import tree

NAME = "postpone"
_BLOCK = re.compile(
    r"^ *`(?P<file>[\w/.]+)`(?:, below `(?P<anchor>[^`]+)`)?:\n\n(?P<indent> *)```\w+\n"
    r"(?P<text>.*?)^ *```$",
    re.M | re.S,
)
# What holds for all verbs, and the cells of this one.
REGISTRY = (
    *("tests/test_verbs.py", "tests/cli/test_contract.py", "tests/cli/test_exit_codes.py"),
    *("tests/cli/test_choosing.py", "tests/cli/test_help.py", "tests/cli/test_every_stream.py"),
    *("tests/output/test_formats.py", "tests/core/test_dry_runs.py", "tests/core/test_verdicts.py"),
    *("tests/core/items/test_full_server.py", "tests/core/inspect/test_server_status.py"),
    *("tests/faults/test_servers.py", "tests/faults/test_cuts.py"),
    *(SHOWN := ("tests/kinds/test_screens.py", "tests/kinds/test_transcripts.py")),
)
WHOLE = (
    *("tests/core/lua/test_scripts.py", "tests/docs/test_generated.py"),
    "tests/test_import_graph.py",
)


def add_the_verb(to: Path) -> set[str]:
    """Change a tree as the page says; the files that it names."""
    page = (tree.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition("## A new verb")[2].partition("\n## ")[0]
    files = set[str]()
    for block in _BLOCK.finditer(section):
        file, anchor = to / block["file"], block["anchor"]
        text = "".join(
            line.removeprefix(block["indent"]) for line in block["text"].splitlines(keepends=True)
        )
        files.add(block["file"])
        if anchor is None:
            assert not file.exists()
            file.write_text(text, "utf-8")
            continue
        lines = file.read_text("utf-8").splitlines(keepends=True)
        (at,) = (number for number, line in enumerate(lines, 1) if anchor in line)
        file.write_text("".join([*lines[:at], text, *lines[at:]]), "utf-8")
    return files


def run(place: Path, *words: str, code: int = 0) -> str:
    interpreter = place / ".venv" / "bin" / "python"
    # A worker of xdist writes no snapshots.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [interpreter, *words], cwd=place, capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == code, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the verb."""
    place = tmp_path_factory.mktemp("t")
    tree.copy_sources(place)
    tree.give_interpreter(place)
    files = add_the_verb(place)
    assert len(files) == 6
    run(place, "-m", "tests.docs.reference", "README.md", "docs")
    return place


@pytest.mark.ci
def test_a_verb_made_by_the_page_passes_the_registry(place: Path) -> None:
    pytest_words = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly")
    # Fails for what it creates.
    run(place, *pytest_words, "--inline-snapshot=create", *SHOWN, "-k", NAME, code=1)
    files = " or ".join(Path(file).stem for file in WHOLE)
    passed = run(place, *pytest_words, *REGISTRY, *WHOLE, "-k", f"{NAME} or {files} or has_a_row")
    assert int(re.findall(r"(\d+) passed", passed)[0]) > 60
