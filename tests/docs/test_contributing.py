"""CONTRIBUTING.md and the decision records name what is there."""

import re
from pathlib import Path

import pytest

from tests.test_import_graph import ROOMS

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ADR = ROOT / "docs" / "adr"
RECORDS = sorted(ADR.glob("[0-9]*.md"))
# A path is written from the root, from the package or from the tests.
PLACES = (ROOT, ROOT / "rwq_cli", ROOT / "tests", ROOT / "docs")


def paths_in(text: str) -> set[str]:
    """The paths of files between backquotes, but for those with a word in capitals for any name."""
    paths = re.findall(r"`((?:[\w.]+/)+[\w-]+\.(?:py|lua|md))`", text)
    return {path for path in paths if not re.search(r"[/_][A-Z]+\.", path)}


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", *RECORDS], ids=lambda path: path.stem)
def test_the_files_that_it_names_exist(path: Path) -> None:
    named = paths_in(path.read_text("utf-8"))
    assert [name for name in named if not any((place / name).exists() for place in PLACES)] == []


def test_the_picture_of_the_house_has_every_room_of_the_core_and_no_other() -> None:
    picture = CONTRIBUTING.split("```")[1]
    core = {room.removeprefix("core.") for room in ROOMS if room.startswith("core.")}
    drawn = re.findall(r"^   (?:(\w+)/|(\w+\.py(?: \w+\.py)*))", picture, re.MULTILINE)
    names = {word.removesuffix(".py") for pair in drawn for word in " ".join(pair).split()}
    assert names == core
    folders = {path.name for path in (ROOT / "rwq_cli").rglob("*") if path.is_dir()}
    assert set(re.findall(r"\b(\w+)/", picture)) <= folders


def test_the_index_has_every_record_with_its_title() -> None:
    index = re.findall(r"^(\d+)\. \[(.*)\]\((.*)\)$", (ADR / "README.md").read_text("utf-8"), re.M)
    assert [name for _, _, name in index] == [path.name for path in RECORDS]
    for number, title, name in index:
        text = (ADR / name).read_text("utf-8")
        assert text.startswith(f"# {number}. {title}\n")
        assert name.startswith(f"{int(number):04d}-")
