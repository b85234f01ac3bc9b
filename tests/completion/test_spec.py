"""The description that the scripts are made from."""

import re

import pytest

from rwq_cli.cli.app import COMMANDS, all_commands
from rwq_cli.cli.choosing import SelectableState
from rwq_cli.cli.global_options import GLOBAL_NAMES
from rwq_cli.cli.settings import OutputFormat
from rwq_cli.commands.ls import Which
from rwq_cli.completion.shells import Shell
from rwq_cli.completion.spec import Command, Kind, Option, Spec, Value, collect
from rwq_cli.input.records import InputFormat


@pytest.fixture(scope="module")
def spec() -> Spec:
    return collect()


def command(spec: Spec, path: str) -> Command:
    return next(known for known in spec.all_commands() if " ".join(known.path) == path)


def option(spec: Spec, path: str, name: str) -> Option:
    known = (*command(spec, path).options, *spec.common)
    return next(option for option in known if name in option.names)


def test_every_command_is_there_in_the_order_of_the_help(spec: Spec) -> None:
    assert [inner.name for inner in spec.root.commands] == list(COMMANDS)
    leaves = [" ".join(known.path) for known in spec.all_commands() if not known.commands]
    assert leaves == [known.path for known in all_commands()]


def test_a_group_has_its_commands_and_its_help(spec: Spec) -> None:
    clean = command(spec, "clean")
    assert [inner.name for inner in clean.commands] == ["light", "deep"]
    assert clean.help == "Make available again what dead workers left behind"
    assert clean.arguments == ()


def test_the_common_options_are_those_of_all_commands_and_help(spec: Spec) -> None:
    longest = {max(known.names, key=len)[2:].replace("-", "_") for known in spec.common}
    assert longest == GLOBAL_NAMES | {"help"}
    for known in spec.all_commands():
        assert not {name for own in known.options for name in own.names} & {
            name for common in spec.common for name in common.names
        }


def test_options_of_rwq_itself(spec: Spec) -> None:
    assert [known.names for known in spec.root.options] == [("-V", "--version")]


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("ls", "--queue", Value(Kind.QUEUE, "NAME")),
        ("ls", "-o", Value(Kind.CHOICES, "FORMAT", tuple(OutputFormat))),
        ("ls", "--url", Value(Kind.OTHER, "URL")),
        ("ls", "--password-file", Value(Kind.FILE, "FILE")),
        ("ls", "--verbose", Value(Kind.NONE)),
        ("ls", "--older-than", Value(Kind.OTHER, "DUR")),
        ("ls", "--state", Value(Kind.CHOICES, "STATE", tuple(SelectableState))),
        ("add", "-f", Value(Kind.FILE, "FILE")),
        ("add", "--format", Value(Kind.CHOICES, "FORMAT", tuple(InputFormat))),
        ("clean light", "--dry-run", Value(Kind.NONE)),
    ],
)
def test_what_an_option_takes(spec: Spec, path: str, name: str, value: Value) -> None:
    assert option(spec, path, name).value == value


@pytest.mark.parametrize(
    ("path", "value", "repeatable"),
    [
        ("ls", Value(Kind.CHOICES, "WHICH", tuple(Which)), False),
        ("completion", Value(Kind.CHOICES, "SHELL", tuple(Shell)), False),
        ("complete", Value(Kind.OTHER, "ID"), True),
        ("local start", Value(Kind.DIRECTORY, "DIR"), False),
    ],
)
def test_what_an_argument_is(spec: Spec, path: str, value: Value, repeatable: bool) -> None:
    (argument,) = command(spec, path).arguments
    assert (argument.value, argument.repeatable) == (value, repeatable)


def test_what_may_be_repeated(spec: Spec) -> None:
    repeatable = {
        (" ".join(known.path), max(own.names, key=len))
        for known in spec.all_commands()
        for own in known.options
        if own.repeatable
    }
    assert repeatable >= {("add", "--file"), ("ls", "--state")}
    assert [known.names for known in spec.common if known.repeatable] == [("-q", "--queue")]


def test_which_options_are_about_the_server(spec: Spec) -> None:
    about = {max(known.names, key=len) for known in spec.common if known.about_server}
    ways = {"--password-file", "--tls-ca", "--tls-cert", "--tls-key", "--tls-insecure"}
    assert about >= {"--url"} | ways
    assert not about & {"--queue", "--output", "--verbose", "--debug", "--no-color", "--help"}


def test_names_and_choices_need_no_quotes_in_any_shell(spec: Spec) -> None:
    words = [word for known in spec.all_commands() for word in known.path]
    for known in spec.all_commands():
        values = [own.value for own in known.options] + [own.value for own in known.arguments]
        words += [choice for value in values for choice in value.choices]
    assert [word for word in words if not re.fullmatch(r"[a-z0-9][a-z0-9:._-]*", word)] == []


def test_helps_are_one_line_without_a_full_stop(spec: Spec) -> None:
    for known in spec.all_commands():
        helps = [known.help, *(own.help for own in known.options)]
        helps += [own.help for own in known.arguments]
        assert all(text and "\n" not in text and text[-1] != "." for text in helps), known.path
