"""What is written twice is compared: first page, completions, version, changelog."""

import re
from importlib.metadata import version
from pathlib import Path

import rwq_cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    assert version("rwq-cli") == rwq_cli.__version__
    assert f"\n## [{rwq_cli.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_readme_begins_with_two_shell_blocks_of_one_command_each() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    assert [len(block.splitlines()) for block in blocks] == [1, 1]
    assert "rwq demo" in blocks[0]
    assert "python -m pytest" in blocks[1]
