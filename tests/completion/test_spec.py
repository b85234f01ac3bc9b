"""The spec that the scripts are generated from."""

import re

import pytest

from rwq_cli.cli.app import COMMANDS, all_commands
from rwq_cli.cli.choosing import SELECTABLE
from rwq_cli.cli.global_options import GLOBAL_NAMES
from rwq_cli.commands.ls import Which
from rwq_cli.completion.scripts import Shell
from rwq_cli.completion.spec import CompletionCommand, Kind, Parameter, Spec, collect
from rwq_cli.core.repair.findings import Code
from rwq_cli.help.topics import Topic
from rwq_cli.input.records import InputFormat
from rwq_cli.output.options import OutputFormat
from tests.conftest import Foreign
from tests.driver import Rwq, configure


@pytest.fixture(scope="module")
def spec() -> Spec:
    return collect()


def command(spec: Spec, path: str) -> CompletionCommand:
    return next(known for known in spec.commands if " ".join(known.path) == path)


def option(spec: Spec, path: str, name: str) -> Parameter:
    known = (*command(spec, path).options, *spec.common)
    return next(option for option in known if name in option.names)


def longest_name(option: Parameter) -> str:
    return max(option.names, key=len)


def test_all_commands_are_described_in_the_order_of_the_help(spec: Spec) -> None:
    assert [inner.path for inner in spec.commands[0].commands] == [(name,) for name in COMMANDS]
    leaves = [
        " ".join(known.path)
        for known in spec.commands
        if not known.is_subject and (not known.commands or known.path in (("help",), ("man",)))
    ]
    assert leaves == [known.path for known in all_commands()]


@pytest.mark.parametrize("verb", ["help", "man"])
def test_commands_and_topics_follow_help_and_man(spec: Spec, verb: str) -> None:
    subjects = [known.path[1:] for known in spec.commands if known.path[:1] == (verb,)][1:]
    known_paths = [known.path for known in spec.commands[1:] if not known.is_subject]
    assert subjects == [*known_paths, *((topic,) for topic in Topic)]
    assert command(spec, verb).arguments == ()


def test_the_fields_of_a_command_are_those_that_it_lists(
    spec: Spec, rwq: Rwq, foreign: Foreign
) -> None:
    foreign.waiting(b"a", b"b")
    configure(rwq.home, '[contexts.prod]\nurl = "local:"\n')
    more = {
        "show": ["a"],
        "result": ["a"],
        "wait": ["--below", "9"],
        "undo": ["--list"],
        "mv": ["--to", "other", "a", "--yes"],
        "export": ["-o", "csv"],
        "import": ["-"],
        "set": ["a"],
        **{verb: ["a"] for verb in ("complete", "touch", "release", "bury", "kick")},
        "rm": ["a", "--yes"],
        "work": ["--task-dir", "/tmp"],
        "purge": ["--dry-run"],
        "context show": ["prod"],
        "context check": ["-c", "prod"],
    }
    known = [each for each in spec.commands if each.fields.names]
    assert len(known) > 20
    for each in known:
        path = " ".join(each.path)
        # An editor, a server that is started, and an error that is for a monitor.
        if path in ("edit", "context check", "check"):
            continue
        words = [*each.path, *more.get(path, ()), "--fields", "?"]
        error = rwq(*words, stdin=b'{"rwq_export": 1, "queue": "jobs"}\n').notes
        assert f"the fields are {', '.join(each.fields.names)}\n" in error, path
        sorting = [*each.path, *more.get(path, ()), "--sort", each.fields.names[0]]
        result = rwq(*sorting, stdin=b'{"rwq_export": 1, "queue": "jobs"}\n')
        refuses = "--sort and --reverse work only for listings" in result.notes
        assert refuses is not each.fields.can_sort, path


def test_the_items_of_a_command_are_among_those_that_ls_lists(spec: Spec) -> None:
    listed = {
        (" ".join(known.path), own.items)
        for known in spec.commands
        for own in (*known.options, *known.arguments)
        if own.kind is Kind.ITEM
    }
    assert {items for _, items in listed} <= set(Which)
    assert listed >= {("touch", "leased"), ("kick", "buried"), ("lease", "waiting"), ("rm", "all")}


def test_a_command_with_subcommands_has_its_own_help_and_no_arguments(spec: Spec) -> None:
    clean = command(spec, "clean")
    assert [inner.path for inner in clean.commands] == [("clean", "light"), ("clean", "deep")]
    assert clean.help == "Return what dead workers left behind"
    assert clean.arguments == ()


def test_the_common_options_belong_to_no_command(spec: Spec) -> None:
    longest = {longest_name(known)[2:].replace("-", "_") for known in spec.common}
    assert longest == GLOBAL_NAMES | {"help"}
    common = {name for known in spec.common for name in known.names}
    for known in spec.commands:
        assert not common & {name for own in known.options for name in own.names}


def test_rwq_itself_has_the_option_version(spec: Spec) -> None:
    assert [known.names for known in spec.commands[0].options] == [("-V", "--version")]


@pytest.mark.parametrize(
    ("path", "name", "kind", "label", "choices"),
    [
        ("ls", "--queue", Kind.QUEUE, "NAME", ()),
        ("ls", "-o", Kind.CHOICES, "FORMAT", tuple(OutputFormat)),
        ("ls", "--url", Kind.OTHER, "URL", ()),
        ("ls", "--password-file", Kind.FILE, "FILE", ()),
        ("ls", "--verbose", Kind.NONE, "", ()),
        ("ls", "--older-than", Kind.OTHER, "DUR", ()),
        ("ls", "--state", Kind.CHOICES, "STATE", SELECTABLE),
        ("add", "-f", Kind.FILE, "FILE", ()),
        ("add", "--id", Kind.OTHER, "ID", ()),
        ("lease", "--id", Kind.ITEM, "ID", ()),
        ("leases", "--holder", Kind.HOLDER, "GLOB", ()),
        ("complete", "--owner", Kind.HOLDER, "SESSION", ()),
        ("doctor", "--only", Kind.LIST, "CODE", tuple(Code)),
        ("add", "--format", Kind.CHOICES, "FORMAT", tuple(InputFormat)),
        ("clean light", "--dry-run", Kind.NONE, "", ()),
    ],
)
def test_the_value_of_an_option(
    spec: Spec, path: str, name: str, kind: Kind, label: str, choices: tuple[str, ...]
) -> None:
    known = option(spec, path, name)
    assert (known.kind, known.label, known.choices) == (kind, label, choices)


@pytest.mark.parametrize(
    ("path", "kind", "label", "choices", "repeatable"),
    [
        ("ls", Kind.CHOICES, "WHICH", tuple(Which), False),
        ("completion", Kind.CHOICES, "SHELL", tuple(Shell), False),
        ("complete", Kind.ITEM, "ID", (), True),
        ("queues", Kind.QUEUE, "PATTERN", (), False),
        ("context use", Kind.CONTEXT, "NAME", (), False),
        ("context rm", Kind.CONTEXT, "NAME", (), True),
        ("undo", Kind.UNDO_FILE, "FILE", (), False),
        ("local start", Kind.DIRECTORY, "DIR", (), False),
    ],
)
def test_the_value_of_an_argument(
    spec: Spec, path: str, kind: Kind, label: str, choices: tuple[str, ...], repeatable: bool
) -> None:
    (known,) = command(spec, path).arguments
    assert (known.kind, known.label, known.choices) == (kind, label, choices)
    assert known.repeatable is repeatable


def test_only_the_last_argument_can_be_repeated(spec: Spec) -> None:
    for known in spec.commands:
        assert not any(argument.repeatable for argument in known.arguments[:-1])


def test_options_that_can_be_repeated(spec: Spec) -> None:
    repeatable = {
        (" ".join(known.path), longest_name(own))
        for known in spec.commands
        for own in known.options
        if own.repeatable
    }
    assert repeatable >= {("add", "--file"), ("ls", "--state")}
    assert [known.names for known in spec.common if known.repeatable] == [("-q", "--queue")]


def test_options_that_select_the_server(spec: Spec) -> None:
    about = {longest_name(known) for known in spec.common if known.about_server}
    ways = {"--password-file", "--tls-ca", "--tls-cert", "--tls-key", "--tls-insecure"}
    assert about >= {"--url"} | ways
    assert not about & {"--queue", "--output", "--verbose", "--debug", "--color", "--help"}
    assert not about & {"--no-color", "--quiet"}


def test_names_and_choices_need_no_quotes_in_any_shell(spec: Spec) -> None:
    words = [word for known in spec.commands for word in known.path]
    for known in spec.commands:
        for parameter in (*known.options, *known.arguments):
            words += parameter.choices
    assert [word for word in words if not re.fullmatch(r"[a-z0-9][a-z0-9:._-]*", word)] == []


def test_help_texts_are_one_line_without_a_full_stop(spec: Spec) -> None:
    for known in spec.commands:
        texts = [known.help, *(own.help for own in (*known.options, *known.arguments))]
        assert all(text and "\n" not in text and text[-1] != "." for text in texts), known.path
