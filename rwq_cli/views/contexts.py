"""Contexts, and what can be done on a server."""

from collections.abc import Callable
from typing import Any, NamedTuple

from rwq_cli.contexts.file import Context, Protection, holds_secret
from rwq_cli.core.inspect.access import ServerAccess
from rwq_cli.core.server.urls import mask_url
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import Cut, Field, Fields
from rwq_cli.output.sections import Row, Section


class CheckedServer(NamedTuple):
    """What `rwq context check` found.

    Attributes:
        server: The server's URL, masked.
        context: The context's name; None if the server was named by its URL.
        queue: The queue for which the user's permissions were checked; None if there is none.
        access: What can be done there.
        no_undo_because: Why `rwq undo` will not work; None if it will.
    """

    server: str
    context: str | None
    queue: bytes | None
    access: ServerAccess
    no_undo_because: str | None


def shown_url(url: str) -> str:
    """A server's URL as it may be shown."""
    return escaped_text(mask_url(url) if "://" in url else url)


class ListedContext(NamedTuple):
    """A context, and whether it is the current one."""

    context: Context
    is_current: bool


def _of_context(
    name: str,
    get: Callable[[Context], object],
    help: str,
    cell: Callable[[Context], str] | None = None,
    **column: Any,
) -> Field[ListedContext]:
    field: Field[Context] = Field(name, get, help, format=cell, **column)
    return field.within(lambda listed: listed.context)


CONTEXT_FIELDS: Fields[ListedContext] = Fields(
    "A context",
    _of_context(
        "name",
        lambda context: context.name,
        "its name",
        style=lambda context: context.color,
        cut=Cut.MIDDLE,
        is_id=True,
    ),
    Field(
        "current",
        lambda listed: listed.is_current,
        "whether it is the current one",
        format=lambda listed: "*" if listed.is_current else "",
    ),
    _of_context(
        "url",
        lambda context: shown_url(context.url),
        "the server, with the password masked",
        title="SERVER",
        cut=Cut.MIDDLE,
    ),
    _of_context(
        "queue",
        lambda context: context.queue,
        "the queue, where nothing else names one",
        lambda context: _text(context.queue) or "-",
    ),
    _of_context(
        "password",
        lambda context: _password(context),
        "where the password is: `url`, `command`, `file` or null",
        lambda context: _password(context) or "-",
        rank=4,
    ),
    _of_context(
        "password_command",
        lambda context: context.password_command,
        "the command that prints it",
    ),
    _of_context("password_file", lambda context: context.password_file, "the file that has it"),
    _of_context("color", lambda context: context.color, "the colour of its name in questions"),
    _of_context(
        "read_only",
        lambda context: context.read_only,
        "whether changes need `--write`",
        lambda context: _yes(context.read_only),
        rank=5,
    ),
    _of_context(
        "protect", lambda context: context.protect.value, "`none`, `ask` or `type`", rank=6
    ),
)
LIST_COLUMNS = ("name", "current", "url", "queue", "password", "read_only", "protect")


def _plain(name: str) -> Field[ListedContext]:
    """A column of `-o plain`, where a boolean is `yes` or `no`."""
    field = CONTEXT_FIELDS[name]

    def value(listed: ListedContext) -> object:
        known = field.get(listed)
        return _yes(known) if isinstance(known, bool) else known

    return field._replace(get=value)


PLAIN_COLUMNS = tuple(map(_plain, LIST_COLUMNS))


def _password(context: Context) -> str | None:
    """Where the password comes from."""
    if context.password_command is not None:
        return "command"
    if context.password_file is not None:
        return "file"
    return "url" if holds_secret(context.url) else None


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _text(value: str | None) -> str:
    return "" if value is None else escaped_text(value)


_PROTECTION = {
    Protection.NONE: "none: destructive commands ask unless --yes is given",
    Protection.ASK: "ask: destructive commands ask on a terminal, even with --yes",
    Protection.TYPE: "type: destructive commands require the context's name, or --yes={name}",
}


def context_sections(listed: ListedContext) -> list[Section]:
    """A context at length."""
    context = listed.context
    password = "none"
    if context.password_command is not None:
        password = f"printed by {_text(context.password_command)}"
    elif context.password_file is not None:
        password = f"in {_text(context.password_file)}"
    elif holds_secret(context.url):
        password = "in the url"
    rows: list[Row] = [
        ("server", shown_url(context.url), None),
        ("queue", _text(context.queue) or "none", None),
        ("password", password, None),
        ("read only", "yes: changes need --write" if context.read_only else "no", None),
        ("protect", _PROTECTION[context.protect].format(name=context.name), None),
    ]
    if context.color is not None:
        rows.append(("color", context.color, context.color))
    if listed.is_current:
        rows.append(("", "It is the current context.", None))
    return [Section(context.name, rows)]


def _access(name: str, get: Callable[[ServerAccess], object], help: str) -> Field[CheckedServer]:
    return Field(name, lambda checked: get(checked.access), help)


CHECKED_FIELDS: Fields[CheckedServer] = Fields(
    "A checked server",
    Field(
        "server",
        lambda checked: checked.server,
        "the server's address, with the password masked",
    ),
    Field(
        "context",
        lambda checked: checked.context,
        "the context's name; null if there is none",
    ),
    Field("queue", lambda checked: checked.queue, "the queue's name", is_bytes=True),
    _access("version", lambda access: access.version, "the server's version"),
    _access("latency_ms", lambda access: round(access.latency_ms, 3), "of one call"),
    _access("user", lambda access: access.user, "the ACL user"),
    _access(
        "denied",
        lambda access: (
            None
            if access.denied is None
            else [
                {"command": verb, "reason": escaped_text(reason)}
                for verb, reason in access.denied.items()
            ]
        ),
        "what the user may not do: `command`, `reason`; null = unknown",
    ),
    _access(
        "writes",
        lambda access: access.no_writes_because is None,
        "whether the server accepts writes; a read-only replica does not",
    ),
    _access("no_writes_because", lambda access: access.no_writes_because, "why not"),
    _access(
        "times",
        lambda access: access.no_times_because is None,
        "whether `idle_seconds` will be known",
    ),
    _access("no_times_because", lambda access: access.no_times_because, "why not"),
    Field(
        "undo",
        lambda checked: checked.no_undo_because is None,
        "whether undo files can be written",
    ),
    Field("no_undo_because", lambda checked: checked.no_undo_because, "why not"),
    _access(
        "no_touch",
        lambda access: access.has_no_touch,
        "whether looking leaves idle times as they are",
    ),
)


def checked_sections(checked: CheckedServer) -> list[Section]:
    """What can be done on a server."""
    access = checked.access
    rows: list[Row] = [
        ("server", checked.server, None),
        ("version", escaped_text(access.version or "unknown"), None),
        ("latency", f"{access.latency_ms:.2f} ms", None),
        ("user", escaped_text(access.user or "unknown"), None),
        *_denied(checked),
        _writes(access.no_writes_because),
        _works("times", access.no_times_because),
        _works("undo", checked.no_undo_because),
        _works(
            "no-touch",
            None if access.has_no_touch else "reading an item's data or size resets its idle time",
        ),
    ]
    return [Section(checked.context or "", rows)]


def _denied(checked: CheckedServer) -> list[Row]:
    denied = checked.access.denied
    if checked.queue is None:
        return [("denied", "unknown: name a queue with -q", None)]
    if denied is None:
        return [("denied", "unknown: servers before Redis 7 cannot be asked", None)]
    if not denied:
        return [("denied", f"nothing on {escaped(checked.queue)}", None)]
    return [
        ("" if number else "denied", f"rwq {verb}: {escaped_text(reason)}", "red")
        for number, (verb, reason) in enumerate(denied.items())
    ]


def _writes(no_because: str | None) -> Row:
    if no_because is None:
        return ("writes", "possible", None)
    return ("writes", f"not possible: {no_because}", "red")


def _works(what: str, no_because: str | None) -> Row:
    if no_because is None:
        return (what, "works", None)
    return (what, f"does not work: {no_because}", "yellow")
