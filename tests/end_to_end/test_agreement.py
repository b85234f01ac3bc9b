"""What is written twice is compared: first page, completions, version, changelog."""

import re
from importlib.metadata import version
from pathlib import Path

import rwq_cli
from rwq_cli.cli.app import all_commands

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


def test_examples_name_commands_that_exist() -> None:
    paths = {described.path for described in all_commands()}
    for described in all_commands():
        for example in described.manual.examples:
            words = example.split("rwq ", 1)[1].split()
            assert words[0] in paths or " ".join(words[:2]) in paths, example
