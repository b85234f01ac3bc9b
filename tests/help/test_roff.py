"""Man pages: exact text, and source that groff and mandoc accept without a warning."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from rwq_cli.cli.app import COMMANDS, CommandInfo, all_commands
from rwq_cli.cli.man_pages import all_man_pages
from rwq_cli.help.page import Page, PageSection
from rwq_cli.help.roff import roff
from rwq_cli.help.topics import Topic

PAGES = dict(all_man_pages())
# Everything that roff or its preprocessors treat specially, at the beginning of a line and inside.
SPECIAL = (
    ".SH no request",
    "'so no request",
    "\\fBno font\\fR \\n(.l \\(bu \\\\ \\",
    "--quoted \"x\" 'y' ^caret ~tilde \\- `",
    ".",
    "... and `` more",
    "    indented .TH",
    "ümlaut → 日本",
    "%s $HOME #{x} @file",
)


def need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


@cache
def rendered(source: str) -> str:
    """The page as groff shows it on a wide terminal, without a warning."""
    # -b: tell where; -ww: every warning; -t: as man does, with the preprocessor for tables.
    command = [need("groff"), *("-t", "-man", "-Tutf8", "-b", "-ww", "-P-cbou", "-rLL=300n")]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode()


def test_there_is_a_page_for_every_command_group_and_topic() -> None:
    paths = {"", *COMMANDS, *(command.path for command in all_commands()), *Topic}
    assert set(PAGES) == {f"rwq {path}".strip().replace(" ", "-") for path in paths}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_plain_ascii_and_groff_accepts_it(name: str) -> None:
    assert PAGES[name].isascii()
    text = rendered(PAGES[name])
    assert re.match(rf"{name.upper()}\(1\)  +rwq manual  +{name.upper()}\(1\)\n", text)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages as files."""
    directory = tmp_path_factory.mktemp("man1")
    for name, source in PAGES.items():
        (directory / f"{name}.1").write_text(source)
    return [directory / f"{name}.1" for name in PAGES]


def test_mandoc_finds_nothing_but_the_missing_dates(files: list[Path]) -> None:
    command = [need("mandoc"), "-T", "lint", "-W", "warning", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    assert done.stdout.count("missing date") == len(PAGES)


def test_the_index_of_man_has_the_name_and_the_summary_of_each_page(files: list[Path]) -> None:
    done = subprocess.run([need("lexgrog"), *files], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    for file, line in zip(files, lines, strict=True):
        assert re.fullmatch(rf'{re.escape(str(file))}: "{file.stem} - [^"]+"', line)


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.path)
def test_a_page_has_the_options_exit_codes_and_examples_of_the_help(command: CommandInfo) -> None:
    text = rendered(PAGES[f"rwq {command.path}".replace(" ", "-")])
    for example in command.manual.examples:
        assert f"           {example}\n" in text
    for code, meaning in command.manual.all_exits.items():
        assert re.search(rf"^       {int(code)} +{re.escape(meaning)}$", text, re.MULTILINE)
    for parameter in command.command.params:
        if parameter.param_type_name == "option":
            for option in parameter.opts:
                assert re.search(rf"^       (-\S+, )?{option}\b", text, re.MULTILINE), option


def test_no_help_text_has_a_backquote_which_would_be_markup() -> None:
    for command in all_commands():
        texts = [command.command.help, *(one.help for one in command.command.params)]
        assert not any("`" in (text or "") for text in texts), command.path


def test_special_characters_are_shown_as_they_are() -> None:
    page = Page("A summary", SPECIAL[0], [PageSection(line, code=SPECIAL) for line in SPECIAL])
    text = rendered(roff("rwq-x", page, "1.0"))
    lines = text.splitlines()
    for line in SPECIAL:
        assert lines.count(f"           {line}".rstrip()) == len(SPECIAL), line
        # The heading, in which a backquote is markup.
        assert "`" in line or f"   {line}" in lines


def test_no_character_is_left_to_the_settings_of_groff() -> None:
    """Debian's groff shows these as they are; others make accents, quotes and hyphens of them."""
    source = roff("rwq-x", Page("S", "T", [PageSection("O", code=["~^'\"`-\\"])]), "1.0")
    assert source.splitlines()[-3] == r"\(ti\(ha\(aq\(dq\(ga\-\e"


def test_code_is_bold_and_the_rest_of_a_term_is_italic() -> None:
    page = Page("S", ".text with `-o json`.", [PageSection("O", rows=[("`-n`, `--limit` N", "x")])])
    source = roff("rwq-x", page, "1.0", synopsis="`rwq x` [ID]...")
    assert source.splitlines()[-7:] == [
        "\\fBrwq x\\fR [ID]...",
        ".SH DESCRIPTION",
        "\\&.text with \\fB\\-o json\\fR.",
        '.SH "O"',
        ".TP",
        "\\fB\\-n\\fR, \\fB\\-\\-limit\\fR\\fI N\\fR",
        "x",
    ]
