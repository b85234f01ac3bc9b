"""Every block of code on the pages runs and prints what the page shows, or can be read."""

import configparser
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from tests.docs.machine import machine
from tests.docs.pages import blocks, pages
from tests.docs.steps import RUN, Step, difference, hosts, steps
from tests.driver import Rwq
from tests.servers import NoServerBinary

# .ci/run runs the two of the first page, each in a fresh clone.
SHELL = "sh"


def ini(text: str) -> None:
    configparser.RawConfigParser(strict=False).read_string(text)


def yaml(text: str) -> None:
    list(pytest.importorskip("yaml").safe_load_all(text))


def dockerfile(text: str) -> None:
    words = [line.split()[0] for line in text.splitlines() if line and line[0] not in "# "]
    assert words[0] == "FROM"
    assert all(re.fullmatch("[A-Z]+", word) for word in words)


def jsonl(text: str) -> None:
    for line in text.splitlines():
        json.loads(line)


def picture(text: str) -> None:
    """A screen or a drawing: what is typed belongs into a console block, where it runs."""
    assert not re.search(r"^\$ ", text, re.M)


READ: dict[str, Callable[[str], Any]] = {
    "dockerfile": dockerfile,
    "ini": ini,
    "json": json.loads,
    "jsonl": jsonl,
    # Parts of files: test_new_verb.py puts them together.
    "lua": str,
    "py": str,
    "text": picture,
    "toml": tomllib.loads,
    "yaml": yaml,
}
BLOCKS = [block for page in pages() for block in blocks(page)]


def test_every_block_has_a_known_language() -> None:
    known = {*RUN, *READ}
    shell = [block for block in BLOCKS if block.language == SHELL]
    assert [block.page for block in shell] == ["README.md", "README.md", "docs/moving.md"]
    # One command each.
    assert [block.text.count("\n") for block in shell[:2]] == [1, 1]
    assert "rwq demo" in shell[0].text
    assert "python -m pytest" in shell[1].text
    others = [block for block in BLOCKS if block.language != SHELL]
    assert {block.place: block.language for block in others if block.language not in known} == {}


def command_lines() -> list[str]:
    """The lines of pictures that are calls of rwq: what cannot run, as it needs other machines."""
    texts = (block.text for block in BLOCKS if block.language == "text")
    lines = (line for text in texts for line in text.splitlines())
    return [line for line in lines if re.match(r"(?:\S+=\S+ )*rwq ", line)]


@pytest.mark.parametrize("line", command_lines())
def test_the_options_of_commands_that_do_not_run_exist(rwq: Rwq, line: str) -> None:
    words = shlex.split(line, comments=True)
    words = words[words.index("rwq") + 1 :]
    ends = (words.index(word) for word in ("--", "|", ">", "&&") if word in words)
    result = rwq(*words[: next(ends, len(words))], "--help")
    assert (result.code, result.notes) == (0, "")


def test_the_blocks_of_data_can_be_read() -> None:
    for block in BLOCKS:
        if block.language in READ:
            READ[block.language](block.text)


@pytest.mark.ci
# Servers before Redis 7.2 print notes about idle times, which no page shows.
@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("page", [page for page in pages() if steps(page)])
def test_the_blocks_of_the_page_print_what_it_shows(page: str) -> None:
    todo = steps(page)
    if any(re.search(r"\bjq\b", step.source) for step in todo) and not shutil.which("jq"):
        pytest.skip("no jq")
    try:
        with machine(hosts(page)) as one:
            for step in todo:
                check(step, one)
    except NoServerBinary as reason:
        pytest.skip(str(reason))


def check(step: Step, one: Any) -> None:
    ran = step.run(one)
    if step.is_as_shown(ran):
        return
    source = step.source.strip()
    if step.shown is None:
        pytest.fail(f"{step.block.place}: {source}\n{ran.output}", pytrace=False)
    shown = difference(step.shown, ran.output)
    pytest.fail(f"{step.block.place}: $ {source}\n{shown}", pytrace=False)
