"""The records of `rwq context`: what is known of a named server."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from rwq_cli.contexts.file import Context, holds_secret
from rwq_cli.core.server.urls import mask_url
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import Cut, Field, Fields, field
from rwq_cli.output.sections import Row, Section

# A record is its JSON object.
Record = Mapping[str, Any]

_PROTECTION = {
    "none": "none: destructive commands ask unless --yes is given",
    "ask": "ask: destructive commands ask on a terminal, even with --yes",
    "type": "type: destructive commands require the context's name, or --yes={name}",
}


def shown_url(url: str) -> str:
    return escaped_text(mask_url(url) if "://" in url else url)


def context_record(context: Context, current: str | None) -> Record:
    password = "url" if holds_secret(context.url) else None
    for kind in ("command", "file"):
        password = kind if getattr(context, f"password_{kind}") is not None else password
    return {
        **context._asdict(),
        "current": context.name == current,
        "url": shown_url(context.url),
        "password": password,
        "protect": context.protect.value,
    }


def _field(name: str, help: str, *kind: Any, **column: Any) -> Field[Record]:
    return field(name, itemgetter(name), help, *kind, **column)


def _yes_or_no(name: str) -> Callable[[Record], str]:
    return lambda record: "yes" if record[name] else "no"


_OR_DASH = {"show": lambda text: escaped_text(text or "-")}

CONTEXT_FIELDS: Fields[Record] = Fields(
    "A context",
    _field("name", "its name", style=itemgetter("color"), cut=Cut.MIDDLE, is_id=True),
    _field(
        "current", "whether it is the current one", {"show": lambda is_it: "*" if is_it else ""}
    ),
    _field("url", "the server, with the password masked", title="SERVER", cut=Cut.MIDDLE),
    _field("queue", "the queue, where nothing else names one", _OR_DASH),
    _field("password", "where the password is: `url`, `command`, `file` or null", _OR_DASH, rank=4),
    _field("password_command", "the command that prints it"),
    _field("password_file", "the file that has it"),
    _field("color", "the colour of its name in questions"),
    _field("read_only", "whether changes need `--write`", rank=5, format=_yes_or_no("read_only")),
    _field("protect", "`none`, `ask` or `type`", rank=6),
)
LIST_COLUMNS = ("name", "current", "url", "queue", "password", "read_only", "protect")
# A boolean of `-o plain` is `yes` or `no`.
PLAIN_COLUMNS = tuple(
    CONTEXT_FIELDS[name]._replace(get=_yes_or_no(name))
    if name in ("current", "read_only")
    else CONTEXT_FIELDS[name]
    for name in LIST_COLUMNS
)


def context_sections(record: Record) -> list[Section]:
    password = {"url": "in the url", None: "none"}.get(record["password"])
    if record["password"] == "command":
        password = f"printed by {escaped_text(record['password_command'])}"
    elif record["password"] == "file":
        password = f"in {escaped_text(record['password_file'])}"
    rows: list[Row] = [
        ("server", record["url"], None),
        ("queue", escaped_text(record["queue"] or "none"), None),
        ("password", password or "", None),
        ("read only", "yes: changes need --write" if record["read_only"] else "no", None),
        ("protect", _PROTECTION[record["protect"]].format(name=record["name"]), None),
    ]
    if record["color"] is not None:
        rows.append(("color", record["color"], record["color"]))
    if record["current"]:
        rows.append(("", "It is the current context.", None))
    return [Section(record["name"], rows)]


CHECKED_FIELDS: Fields[Record] = Fields(
    "A checked server",
    _field("server", "the server's address, with the password masked"),
    _field("context", "the context's name; null if there is none"),
    _field("queue", "the queue's name", is_bytes=True),
    _field("version", "the server's version"),
    _field("latency_ms", "of one call"),
    _field("user", "the ACL user"),
    _field("denied", "what the user may not do: `command`, `reason`; null = unknown"),
    _field("writes", "whether the server accepts writes; a read-only replica does not"),
    _field("no_writes_because", "why not"),
    _field("times", "whether `idle_seconds` will be known"),
    _field("no_times_because", "why not"),
    _field("undo", "whether undo files can be written"),
    _field("no_undo_because", "why not"),
    _field("no_touch", "whether looking leaves idle times as they are"),
)


def checked_sections(record: Record) -> list[Section]:
    no_touch = "reading an item's data or size resets its idle time"
    nothing = f"nothing on {escaped(record['queue'] or b'')}"
    if record["queue"] is None:
        nothing = "unknown: name a queue with -q"
    elif record["denied"] is None:
        nothing = "unknown: servers before Redis 7 cannot be asked"
    denied: list[Row] = [
        ("" if number else "denied", f"rwq {each['command']}: {each['reason']}", "red")
        for number, each in enumerate(record["denied"] or ())
    ] or [("denied", nothing, None)]
    rows: list[Row] = [
        ("server", record["server"], None),
        ("version", escaped_text(record["version"] or "unknown"), None),
        ("latency", f"{record['latency_ms']:.2f} ms", None),
        ("user", escaped_text(record["user"] or "unknown"), None),
        *denied,
        _works("writes", record["no_writes_because"], "possible", "red"),
        _works("times", record["no_times_because"]),
        _works("undo", record["no_undo_because"]),
        _works("no-touch", None if record["no_touch"] else no_touch),
    ]
    return [Section(record["context"] or "", rows)]


def _works(what: str, no_because: str | None, yes: str = "works", style: str = "yellow") -> Row:
    if no_because is None:
        return (what, yes, None)
    no = "does not work" if yes == "works" else f"not {yes}"
    return (what, f"{no}: {no_because}", style)
