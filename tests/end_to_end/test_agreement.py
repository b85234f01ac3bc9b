"""What is written twice is compared: README, completions, version, changelog."""

import re
from importlib.metadata import version
from pathlib import Path

import rwq_cli
from rwq_cli.cli.app import all_commands
from rwq_cli.cli.reference import with_generated_parts
from rwq_cli.exit_codes import ExitStatus

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_readme_has_the_reference_and_the_findings_as_the_code_makes_them() -> None:
    assert with_generated_parts(README) == README


def test_readme_names_every_json_field_of_an_item() -> None:
    from rwq_cli.core.model import Item, State
    from rwq_cli.views.items import item_fields

    table = README.partition("An item in JSON always has all of these fields")[2].partition(
        "\n`show` adds"
    )[0]
    named = set(re.findall(r"`([a-z0-9_]+)`", table))
    for name in item_fields(Item(b"jobs", b"1", State.WAITING)):
        assert name in named, name


def test_readme_names_every_state_and_exit_code() -> None:
    from rwq_cli.core.model import State

    for state in State:
        assert f"`{state.value}`" in README, state
    for status in ExitStatus:
        assert f"| {int(status)} | {status.meaning} |" in README


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
