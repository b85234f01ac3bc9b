"""The generated parts of the pages are those that the code makes now, and leave nothing out."""

import re

import pytest

from rwq_cli.cli import reference
from rwq_cli.cli.app import all_commands
from rwq_cli.cli.command import help_record
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.help.recipes import RECIPES
from tests.docs.pages import pages, text_of

REFERENCE = text_of("docs/reference.md")


@pytest.mark.parametrize("page", pages())
def test_what_is_generated_is_current(page: str) -> None:
    text = text_of(page)
    assert reference.with_generated_parts(text) == text
    # A marker that is misspelled would never be filled.
    markers = re.findall(r"^<!-- (?:end of the )?(\w+)", text, re.M)
    assert len(markers) == 2 * len(reference.generated_parts(text))


@pytest.mark.parametrize("name", ["states", "findings", "recipes", "reference"])
def test_each_part_is_on_one_page(name: str) -> None:
    assert [page for page in pages() if name in reference.generated_parts(text_of(page))] != []


def test_the_pages_name_every_state_finding_and_recipe() -> None:
    text = "".join(map(text_of, pages()))
    for state in State:
        assert f"| `{state.value}` |" in text, state
    for code in Code:
        assert f"| `{code.value}` |" in text, code
    for recipe in RECIPES:
        assert f"**{recipe.title}.**" in text, recipe


def test_the_reference_names_every_command_option_and_exit_code() -> None:
    for described in all_commands():
        section = REFERENCE.partition(f"\n### `rwq {described.path}`\n")[2].partition("\n##")[0]
        assert section, described.path
        context = reference.context_of(described)
        for parameter in described.command.params:
            if parameter.name != "help" and (record := help_record(parameter, context)):
                name = record[0].replace("|", "\\|")
                assert f"| `{name}` |" in section + common_options(), (described.path, name)
        for status, meaning in described.manual.exits.items():
            assert f"{int(status)} {meaning}" in section
    for status in ExitStatus:
        assert f"| {int(status)} | {status.meaning} |" in REFERENCE


def common_options() -> str:
    return REFERENCE.partition("\n## Common options\n")[2].partition("\n## ")[0]
