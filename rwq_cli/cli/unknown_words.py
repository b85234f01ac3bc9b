"""Words that rwq does not know: its own word for them, or one that is spelled like them."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any

from rwq_cli.cli.options import UsageError

# These remove or replace items or data, so they are never suggested for a mistyped command.
DESTRUCTIVE = frozenset({"complete", "mv", "purge", "rm"})

_ADD = "rwq add adds items"
_LEASE = "rwq lease takes the next item"
_WORK = "rwq work runs a command for each item, rwq lease takes one"
_COMPLETE = "rwq complete finishes an item"
_RELEASE = "rwq release returns an item to the queue"
_BURY = "rwq bury sets an item aside until rwq kick returns it"
_TOUCH = "rwq touch renews a lease"
_REMOVE = f"{_COMPLETE}; rwq rm removes one in any state, and rwq undo restores it"
_PURGE = (
    "rwq wait waits until workers have emptied a queue; rwq purge --dry-run says what there is to "
    "remove"
)
_LIST = "rwq ls lists items, rwq leases those in processing"
_PEEK = "rwq ls shows what is next, rwq show one item"
_COUNT = "rwq stats counts a queue's items, rwq queues those of every queue"
_HEALTH = (
    "rwq stats counts a queue's items, rwq doctor finds what is wrong with it, and rwq check is "
    "for monitoring"
)
_CLEAN = "rwq clean light returns what dead workers left, rwq doctor --fix fixes more"
_LATER = "rwq add --delay and rwq release --delay delay items"
_EDIT = "rwq edit opens the data of an item in an editor, rwq edit -f takes it from a file or stdin"
_MOVE = "rwq mv --to moves items to another queue"
_COPY = "rwq export and rwq import copy a queue"
_FIND = "rwq ls --where and --match find items by their data, --id-glob by their IDs"
_REPEAT = (
    "rwq top shows all queues live, rwq stats -q QUEUE --watch one; rwq wait waits for a queue"
)
_PAUSE = (
    "a queue cannot be paused: no key makes workers stop. Stop the workers, or bury the waiting "
    "items: rwq bury -q QUEUE --state waiting --reason paused; later rwq kick -q QUEUE --all "
    "returns all buried items"
)
_RESUME = (
    "queues cannot be paused, so there is nothing to resume. Start the workers; buried items "
    "return with rwq kick -q QUEUE --all"
)

# What people type elsewhere, in beanstalkd, SQS, RabbitMQ, NATS, Sidekiq or Redis.
_SYNONYMS = {
    _ADD: "put push enqueue insert create new submit send publish produce lpush rpush append",
    _LEASE: "pop reserve dequeue take fetch receive claim pull next shift rpop lock",
    _WORK: (
        "worker run exec execute consume consumer perform process handle foreach each xargs "
        "parallel daemon job-runner"
    ),
    _COMPLETE: "ack acknowledge done finish commit succeed resolve close",
    _RELEASE: "nack requeue return unlock abandon unreserve unlease giveup reschedule",
    f"{_RELEASE}, rwq kick a buried one": "retry",
    _BURY: "fail quarantine park shelve hold suspend dead deadletter dead-letter block",
    "rwq kick returns buried items to the queue": "unbury revive resurrect unpark redrive",
    _TOUCH: "extend renew heartbeat keepalive prolong",
    _REMOVE: "delete del remove erase drop destroy discard",
    f"{_BURY}; rwq rm removes one, and rwq undo restores it": "cancel kill abort",
    f"{_BURY}; rwq complete --rejected gives one up": "reject",
    _PURGE: "empty flush clear truncate drain flushdb flushall wipe",
    _LIST: "list items dir all jobs messages tasks job",
    _PEEK: "peek head first lrange range browse",
    "rwq show shows one item, rwq lease takes the next one": "get read view cat",
    "rwq show describes an item, rwq stats a queue": "describe inspect info details explain why",
    _COUNT: "count len llen length size depth zcard",
    _HEALTH: "status health healthcheck ping metrics monitoring",
    "rwq queues lists the queues": "tubes list-queues list-tubes lsq streams topics keys",
    "rwq leases lists who holds what": "workers holders sessions who consumers running locks ttl",
    _CLEAN: "repair fix heal recover reap gc vacuum sweep reclaim unstick cleanup",
    _LATER: "schedule delay defer later snooze postpone",
    _EDIT: "set update modify change patch replace overwrite vi vim",
    _MOVE: "move rename transfer forward shovel",
    _COPY: "copy cp clone backup dump save",
    "rwq import reads an export, rwq undo restores what was removed": "restore load revert",
    _FIND: "search find grep filter query select scan",
    _REPEAT: "watch monitor follow tail subscribe",
    "rwq result shows the result that complete stored": "results output outcome history",
    "rwq ls buried lists what failed and was set aside": "failed failures errors dlq buried",
    "rwq ls delayed lists what is delayed": "delayed scheduled",
    "a queue exists as soon as it has an item: rwq add": "init create-queue declare queue-declare",
    "rwq --version": "version",
    _PAUSE: "pause stop halt freeze",
    _RESUME: "resume unpause start continue unfreeze",
}
SYNONYM_HINTS = {word: ours for ours, words in _SYNONYMS.items() for word in words.split()}


def unknown_command(context: Any, word: str, commands: Sequence[str]) -> UsageError:
    """The error for a word that is not a command.

    Args:
        context: The context of the group that was given the word.
        word: The word.
        commands: The commands of the group.
    """
    path = context.command_path
    hint = f"see {path} --help"
    ours = SYNONYM_HINTS.get(word.lower()) if context.parent is None else None
    near = get_close_matches(word, commands)
    if ours is not None:
        hint = ours
    elif near and near[0] not in DESTRUCTIVE:
        meant = [f"{path} {name}" for name in near if name not in DESTRUCTIVE]
        hint = f"did you mean: {' or '.join(meant)}"
    elif context.parent is not None:
        hint = f"{path} is followed by {' or '.join(commands)}"
    return UsageError(f"no such command {word!r}", hint)


def option_of_commands(group: Any, context: Any, option: str) -> UsageError | None:
    """The error for an option before the command that it is for; None if no command has it.

    Args:
        group: The commands.
        context: The context of the group.
        option: The option.
    """
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
    """The error for more words than the command has arguments.

    Args:
        command: The command.
        context: Its context.
        given: All words after the command.
        extra: Those of them that are neither options nor their values.
    """
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
    """Whether a command works on the queues that `-q` names."""
    return any(" -q " in example for example in command.manual.examples)
