"""Words that rwq does not know: its own word for each, or one with a similar spelling."""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from rwq_cli.exit_codes import UsageError

# What people type elsewhere, in beanstalkd, SQS, RabbitMQ, NATS, Sidekiq or Redis.
_SYNONYMS = {
    "rwq add adds items": "put push enqueue create publish",
    "rwq lease takes the next item": "pop reserve dequeue take get fetch receive",
    "rwq work runs a command for each item": "worker run consume process xargs",
    "rwq complete finishes an item": "ack acknowledge done",
    "rwq release returns an item to the queue, rwq kick a buried one": "nack requeue retry",
    "rwq bury sets an item aside; rwq complete finishes one; rwq rm removes one, and rwq undo "
    "restores it": "delete del remove drop cancel fail reject",
    "rwq wait waits until a queue is empty; rwq purge --dry-run says what there is to remove": (
        "empty flush clear truncate drain"
    ),
    "rwq touch renews a lease": "extend renew",
    "rwq ls shows what is next, rwq show one item, rwq leases what is taken": "list peek describe",
    "rwq stats counts a queue's items, rwq queues those of every queue": "count len size",
    "rwq stats counts a queue's items, rwq doctor finds what is wrong": "status health info",
    "rwq clean light returns what dead workers left, rwq doctor --fix fixes more": "repair fix",
    "rwq add --delay and rwq release --delay delay items": "schedule delay",
    "rwq edit opens the data of an item, rwq edit -f takes it from a file or stdin": "set update",
    "rwq mv --to moves items, rwq export and rwq import copy a queue": "move copy",
    "rwq ls --where and --match find items by their data": "search find grep",
    "rwq top shows all queues live, rwq stats -q QUEUE --watch one": "watch",
    "rwq --version": "version",
    "a queue cannot be paused: no key makes workers stop. Stop the workers, or bury what waits: "
    "rwq bury -q QUEUE --state waiting --reason paused; rwq kick -q QUEUE --reason paused "
    "returns it": "pause resume",
}
SYNONYM_HINTS = {word: ours for ours, words in _SYNONYMS.items() for word in words.split()}


def unknown_command(context: Any, word: str) -> UsageError:
    """Return the error for a word that is not a command of the group."""
    path, group = context.command_path, context.command
    commands = group.list_commands(context)
    near = get_close_matches(word, commands)
    manuals = {name: getattr(group.get_command(context, name), "manual", None) for name in near}
    safe = [name for name, manual in manuals.items() if not (manual and manual.destructive)]
    hint = f"see {path} --help"
    if context.parent is None and word.lower() in SYNONYM_HINTS:
        hint = SYNONYM_HINTS[word.lower()]
    elif near and near[0] in safe:
        hint = f"did you mean: {' or '.join(f'{path} {name}' for name in safe)}"
    elif context.parent is not None:
        hint = f"{path} is followed by {' or '.join(commands)}"
    return UsageError(f"no such command {word!r}", hint)


def unexpected_words(command: Any, context: Any, extra: Sequence[str]) -> UsageError:
    """Return the error for words beyond the arguments that the command takes."""
    path = context.command_path
    hint = f"see {path} --help"
    if any(parameter.param_type_name == "argument" for parameter in command.params):
        plural = "s" if len(extra) > 1 else ""
        return UsageError(f"unexpected argument{plural}: {_quoted(*extra)}", hint)
    if _is_about_queues(command) and "queue" not in context.find_root().obj.common_options:
        hint = f"did you mean: {path} {' '.join(f'-q {_quoted(word)}' for word in extra)}"
    return UsageError(f"{path.removeprefix('rwq ')} takes no arguments", hint)


def bad_word(
    command: Any, context: Any, words: Sequence[str], by_name: Mapping[str, Any], error: Any
) -> Any:
    """Return the error for an option that is unknown, perhaps an ID, or for a bad value.

    Args:
        command: The command.
        context: Typer's context of the command.
        words: All words that follow it.
        by_name: Those of each parameter, if they could be told apart.
        error: What Typer raised.
    """
    path = context.command_path
    if hasattr(error, "possibilities") and not error.possibilities:
        arguments = (word for word in command.params if word.param_type_name == "argument")
        if any("ID" in (word.metavar or "") for word in arguments):
            option = (word for word in words if word.startswith(error.option_name))
            line = f"{path} -- {_quoted(next(option, error.option_name))}"
            return UsageError(
                f"no such option: {error.option_name}", f"for an ID that begins with -: {line}"
            )
    parameter = getattr(error, "param", None)
    if not isinstance(error, typer.BadParameter) or parameter is None:
        return error
    hint = f"see {path} --help"
    if parameter.param_type_name == "option":
        return error
    label, value = (parameter.metavar or "").strip("[]"), by_name.get(parameter.name)
    if not value:
        return UsageError(f"{label} is missing", hint)
    choices = list(getattr(parameter.type, "choices", ()))
    allowed = f"it must be one of {', '.join(map(str, choices))}" if choices else error.message
    near = get_close_matches(value, map(str, choices), 1) if choices else []
    if near or _is_about_queues(command):
        hint = f"did you mean: {path} {near[0] if near else f'-q {_quoted(value)}'}"
        allowed = ""
    return UsageError(f"{label} cannot be {value!r}", allowed or hint)


def _is_about_queues(command: Any) -> bool:
    return any(" -q " in example for example in command.manual.examples)


def _quoted(*words: str) -> str:
    from rwq_cli.views.command_lines import shell_word

    return " ".join(shell_word(os.fsencode(word)) for word in words)
