"""Contexts, and what can be done on a server."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from rwq_cli.contexts.file import holds_secret
from rwq_cli.contexts.model import Context, Protection
from rwq_cli.core.inspect.access import ServerAccess
from rwq_cli.core.server.masking import mask_url
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.report import LAST_EXTRA, Column, Cut, Records, Row, Section, View

_SAMPLE = Context("", "local:")
# The first column that a narrow terminal leaves out.
_LEAST = LAST_EXTRA + 1


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


def context_list(
    contexts: Iterable[Context], current: str | None, *, note: str | None = None
) -> Records[Context]:
    """The report of `rwq context list`."""
    return Records(
        view=_view(current),
        records=contexts,
        empty=lambda: "No contexts; rwq context set NAME -u URL creates one.",
        closing=lambda: note,
    )


def one_context(
    context: Context, current: str | None, *, text: str | None = None, note: str | None = None
) -> Records[Context]:
    """The report of one context; `text` replaces it in formats for people."""
    return Records(
        view=_view(current, detailed=True),
        records=[context],
        is_one=True,
        text=text,
        closing=lambda: note,
    )


def removed_contexts(contexts: list[Context]) -> Records[Context]:
    """The report of `rwq context rm`."""
    return Records(
        view=_view(None),
        records=contexts,
        text="".join(f"removed context {context.name}\n" for context in contexts),
    )


def shown_url(url: str) -> str:
    """A server's URL as it may be shown."""
    return escaped_text(mask_url(url) if "://" in url else url)


def list_columns(current: str | None) -> tuple[Column[Context], ...]:
    """The columns of a list of contexts."""

    def is_current(context: Context) -> bool:
        return context.name == current

    return (
        Column(
            "NAME",
            lambda context: context.name,
            style=lambda context: context.color,
            cut=Cut.MIDDLE,
        ),
        Column(
            "CURRENT",
            lambda context: _yes(is_current(context)),
            lambda context: "*" if is_current(context) else "",
        ),
        Column("SERVER", lambda context: shown_url(context.url), field="url", cut=Cut.MIDDLE),
        Column("QUEUE", lambda context: context.queue, lambda context: _text(context.queue) or "-"),
        Column("PASSWORD", _password, lambda context: _password(context) or "-", rank=_LEAST),
        Column(
            "READ ONLY",
            lambda context: _yes(context.read_only),
            field="read_only",
            rank=_LEAST + 1,
        ),
        Column("PROTECT", lambda context: context.protect.value, rank=_LEAST + 2),
    )


def _view(current: str | None, *, detailed: bool = False) -> View[Context]:
    def is_current(context: Context) -> bool:
        return context.name == current

    return View(
        lambda context: _fields(context, is_current=is_current(context)),
        lambda context: context.name.encode(),
        _SAMPLE,
        list_columns(current),
        (lambda context: _sections(context, is_current=is_current(context))) if detailed else None,
    )


def _fields(context: Context, *, is_current: bool) -> dict[str, Any]:
    return {
        "name": context.name,
        "current": is_current,
        "url": shown_url(context.url),
        "queue": context.queue,
        "password": _password(context),
        "password_command": context.password_command,
        "password_file": context.password_file,
        "color": context.color,
        "read_only": context.read_only,
        "protect": context.protect.value,
    }


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


def _sections(context: Context, *, is_current: bool) -> list[Section]:
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
    if is_current:
        rows.append(("", "It is the current context.", None))
    return [Section(context.name, rows)]


def checked_report(checked: Iterable[CheckedServer]) -> Records[CheckedServer]:
    """The report of `rwq context check`. Reading the record queries the server."""
    nothing = ServerAccess(None, 0.0, None, None, False, None, None)
    return Records(
        view=View(
            _checked_fields,
            None,
            CheckedServer("", None, None, nothing, None),
            sections=_checked_sections,
        ),
        records=checked,
        is_one=True,
    )


def _checked_fields(checked: CheckedServer) -> dict[str, Any]:
    access = checked.access
    denied = None
    if access.denied is not None:
        denied = [
            {"command": verb, "reason": escaped_text(reason)}
            for verb, reason in access.denied.items()
        ]
    return {
        "server": checked.server,
        "context": checked.context,
        **bytes_fields("queue", checked.queue),
        "version": access.version,
        "latency_ms": round(access.latency_ms, 3),
        "user": access.user,
        "denied": denied,
        "writes": access.no_writes_because is None,
        "no_writes_because": access.no_writes_because,
        "times": access.no_times_because is None,
        "no_times_because": access.no_times_because,
        "undo": checked.no_undo_because is None,
        "no_undo_because": checked.no_undo_because,
        "no_touch": access.has_no_touch,
    }


def _checked_sections(checked: CheckedServer) -> list[Section]:
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
