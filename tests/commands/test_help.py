"""`rwq help`: the help of a command, or a topic."""

import pytest

from rwq_cli.cli.options import global_options
from tests.driver import Rwq


@pytest.mark.parametrize("words", [("ls",), ("clean",), ("clean", "light"), ("help",)])
def test_it_shows_the_help_of_a_command(bare_rwq: Rwq, words: tuple[str, ...]) -> None:
    assert bare_rwq("help", *words).as_tuple() == bare_rwq(*words, "--help").as_tuple()


def test_the_common_options_are_a_topic(bare_rwq: Rwq) -> None:
    text = bare_rwq("help", "options").text
    for option in global_options():
        assert f"\n  {', '.join(option.opts)}" in text


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("state",), "no command or topic 'state'; try rwq help states"),
        (("receipts",), "no command or topic 'receipts'; try rwq help recipes"),
        (("recipes", "x"), "recipes is a topic, not a group; leave out x"),
        (("ls", "x"), "rwq ls has no command 'x'; see rwq ls --help"),
        (("xyzzy",), "no such command 'xyzzy'; see rwq --help"),
    ],
)
def test_unknown_words_are_wrong_usage(bare_rwq: Rwq, words: tuple[str, ...], error: str) -> None:
    assert bare_rwq("help", *words).as_tuple() == (2, "", f"rwq: error: {error}\n")
