"""Words that rwq does not know: its own word for them, or one that is spelled like them."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any

from rwq_cli.exit_codes import UsageError

_LOST = (
    "rwq bury sets an item aside; rwq complete finishes one; rwq rm removes one, and rwq undo "
    "restores it"
)
_PAUSE = (
    "a queue cannot be paused: no key makes workers stop. Stop the workers, or bury what waits: "
    "rwq bury -q QUEUE --state waiting --reason paused; rwq kick -q QUEUE --all returns it"
)

# What people type elsewhere, in beanstalkd, SQS, RabbitMQ, NATS, Sidekiq or Redis.
_SYNONYMS = {
    "rwq add adds items": "put push enqueue create new publish",
    "rwq lease takes the next item": "pop reserve dequeue take get fetch receive",
    "rwq work runs a command for each item": "worker run consume process xargs",
    "rwq complete finishes an item": "ack acknowledge done",
    "rwq release returns an item to the queue, rwq kick a buried one": "nack requeue retry",
    _LOST: "delete del remove drop cancel fail reject",
    "rwq wait waits until a queue is empty; rwq purge --dry-run says what there is to remove": (
        "empty flush clear truncate drain"
    ),
    "rwq touch renews a lease": "extend renew",
    "rwq ls shows what is next, rwq show one item, rwq leases what is taken": (
        "list peek describe"
    ),
    "rwq stats counts a queue's items, rwq queues those of every queue": "count len size",
    "rwq stats counts a queue's items, rwq doctor finds what is wrong": "status health info",
    "rwq clean light returns what dead workers left, rwq doctor --fix fixes more": "repair fix",
    "rwq add --delay and rwq release --delay delay items": "schedule delay",
    "rwq edit opens the data of an item, rwq edit -f takes it from a file or stdin": "set update",
    "rwq mv --to moves items, rwq export and rwq import copy a queue": "move copy",
    "rwq ls --where and --match find items by their data": "search find grep",
    "rwq top shows all queues live, rwq stats -q QUEUE --watch one": "watch",
    "rwq --version": "version",
    _PAUSE: "pause resume",
}
SYNONYM_HINTS = {word: ours for ours, words in _SYNONYMS.items() for word in words.split()}


def unknown_command(context: Any, word: str) -> UsageError:
    """The error for a word that is not a command of the group that was given it."""
    path, group = context.command_path, context.command
    commands = group.list_commands(context)
    hint = f"see {path} --help"
    ours = SYNONYM_HINTS.get(word.lower()) if context.parent is None else None
    near = get_close_matches(word, commands)
    safe = [name for name in near if not _is_destructive(group.get_command(context, name))]
    if ours is not None:
        hint = ours
    elif near and near[0] in safe:
        hint = f"did you mean: {' or '.join(f'{path} {name}' for name in safe)}"
    elif context.parent is not None:
        hint = f"{path} is followed by {' or '.join(commands)}"
    return UsageError(f"no such command {word!r}", hint)


def _is_destructive(command: Any) -> bool:
    return hasattr(command, "manual") and command.manual.destructive


def option_of_commands(group: Any, context: Any, option: str) -> UsageError | None:
    """The error for an option before the command that it is for; None if no command has it."""
    commands = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    path = context.command_path
    meant = [
        f"{path} {name} {option}"
        for name, command in commands
        if any(option in (*each.opts, *each.secondary_opts) for each in command.params)
    ]
    if not meant:
        return None
    return UsageError(
        f"{context.info_name} needs a command before {option}", f"as in {' or '.join(meant)}"
    )


def unexpected_words(
    command: Any, context: Any, given: Sequence[str], extra: Sequence[str]
) -> UsageError:
    """The error for more words than the command has arguments."""
    from rwq_cli.views.command_lines import shell_word

    path, settings = context.command_path, context.find_root().obj
    shown = [shell_word(os.fsencode(word)) for word in extra]
    if any(parameter.param_type_name == "argument" for parameter in command.params):
        plural = "s" if len(extra) > 1 else ""
        return UsageError(f"unexpected argument{plural}: {' '.join(shown)}", f"see {path} --help")
    names = ["-q"] if is_about_queues(command) and "queue" not in settings.given else []
    if settings.queues and any("--id" in parameter.opts for parameter in command.params):
        names.append("--id")
    hint = f"see {path} --help"
    if names:
        lines = [_with_option(settings, given, extra, name) for name in names]
        if None in lines:
            meant = [" ".join(f"{name} {word}" for word in shown) for name in names]
            hint = f"did you mean {' or '.join(meant)}"
        else:
            hint = f"did you mean: {' or '.join(filter(None, lines))}"
    return UsageError(f"{path.removeprefix('rwq ')} takes no arguments", hint)


def _with_option(
    settings: Any, given: Sequence[str], extra: Sequence[str], name: str
) -> str | None:
    """The command line with an option before each of the extra words.

    None if it cannot be offered: a word that stands there twice may also be an option's value, and
    a URL may have a password in it.
    """
    from rwq_cli.core.server.masking import mask_url
    from rwq_cli.views.command_lines import shell_word

    url = settings.given.get("url", "")
    if any(given.count(word) > 1 for word in extra) or mask_url(url) != url:
        return None
    before = settings.arguments[: -len(given)]
    # Not `given`, in which --yes has lost its name.
    after = settings.arguments[-len(given) :]
    named = ([name, word] if word in extra else [word] for word in after)
    words = ["rwq", *before, *chain.from_iterable(named)]
    return " ".join(shell_word(os.fsencode(word)) for word in words)


def bad_argument(command: Any, error: Any) -> Exception:
    """The error for a word that an argument cannot be, perhaps because it is a queue's name."""
    is_argument = getattr(error.param, "param_type_name", None) == "argument"
    if not (is_argument and is_about_queues(command)):
        return error  # type: ignore[no-any-return]
    message = error.format_message().rstrip(".")
    hint = "a queue is named with -q"
    word = message.partition(": ")[2].split("'")
    if len(word) > 1 and (near := get_close_matches(word[1], word[3::2], 1)):
        hint = f"did you mean {near[0]}"
    return UsageError(message[:1].lower() + message[1:], hint)


def is_about_queues(command: Any) -> bool:
    """True if a command works on the queues that `-q` names."""
    return any(" -q " in example for example in command.manual.examples)
