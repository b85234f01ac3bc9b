"""`rwq context`: named servers."""

import os
from collections.abc import Callable, Set
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

from msgspec.structs import asdict

from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.manual import UNWRITTEN
from rwq_cli.cli.options import offer_contexts
from rwq_cli.cli.settings import LOCAL
from rwq_cli.commands import InvalidArgument, Settings, argument, command, escaped, option
from rwq_cli.commands.undoing import find_undo_directory
from rwq_cli.contexts.config import KEYS, Colour, Context, Protection, holds_secret
from rwq_cli.core.errors import RwqError
from rwq_cli.core.health import ServerStatus
from rwq_cli.core.inspect.server_status import server_access
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.urls import mask_url
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.field import Cut, Field, Fields, field
from rwq_cli.output.sections import Line, Section
from rwq_cli.undo.directory import explain_unwritable
from rwq_cli.views.health import refusal_in_words, status_parts

# A record is its JSON object.
Record = dict[str, Any]

_PROTECTION = {
    "none": "none: destructive commands ask unless --yes is given",
    "ask": "ask: destructive commands ask on a terminal, even with --yes",
    "type": "type: destructive commands require the context's name, or --yes={name}",
}


def mask_shown_url(url: str) -> str:
    return escaped_text(mask_url(url) if "://" in url else url)


def context_record(context: Context, current: str | None) -> Record:
    password = "url" if holds_secret(context.url) else None
    password = "command" if context.password_command is not None else password
    password = "file" if context.password_file is not None else password
    is_current, url = context.name == current, mask_shown_url(context.url)
    return {**asdict(context), "current": is_current, "url": url, "password": password}


def _field(name: str, help: str, *kind: Any, **column: Any) -> Field[Record]:
    return field(name, itemgetter(name), help, *kind, **column)


def _yes_or_no(name: str) -> Callable[[Record], str]:
    return lambda record: "yes" if record[name] else "no"


_MARK = {"show": lambda is_it: "*" if is_it else ""}

CONTEXT_FIELDS: Fields[Record] = Fields(
    "A context",
    _field("name", "its name", style=itemgetter("color"), cut=Cut.MIDDLE, is_id=True),
    _field("current", "whether it is the current one", _MARK),
    _field("url", "the server, with the password masked", title="SERVER", cut=Cut.MIDDLE),
    _field("queue", "the queue, if nothing else names one"),
    _field("password", "where the password is: `url`, `command`, `file` or null", rank=4),
    _field("password_command", "the command that prints it"),
    _field("password_file", "the file that contains it"),
    _field("color", "the colour of its name in questions"),
    _field("tls_ca", "the file with the certificate authorities to trust"),
    _field("tls_cert", "the file with the client's certificate"),
    _field("tls_key", "the file with the client's key"),
    _field("tls_insecure", "whether any server certificate is accepted"),
    _field("undo_dir", "the directory of its undo files"),
    _field("read_only", "whether changes need `--write`", rank=5, format=_yes_or_no("read_only")),
    _field("protect", "`none`, `ask` or `type`", rank=6),
)
LIST_COLUMNS = ("name", "current", "url", "queue", "password", "read_only", "protect")
# In `-o plain`, a boolean is `yes` or `no`.
_PLAIN_BOOLEANS = {"current": _yes_or_no("current"), "read_only": _yes_or_no("read_only")}
PLAIN_COLUMNS = [
    CONTEXT_FIELDS[name]._replace(get=_PLAIN_BOOLEANS.get(name, itemgetter(name)))
    for name in LIST_COLUMNS
]


def context_sections(record: Record) -> list[Section]:
    password = {
        None: "none",
        "url": "in the url",
        "command": f"printed by {escaped_text(record['password_command'] or '')}",
        "file": f"in {escaped_text(record['password_file'] or '')}",
    }
    rows: list[Line] = [
        ("server", record["url"], None),
        ("queue", escaped_text(record["queue"] or "none"), None),
        ("password", password[record["password"]], None),
        ("read only", "yes: changes need --write" if record["read_only"] else "no", None),
        ("protect", _PROTECTION[record["protect"]].format(name=record["name"]), None),
    ]
    if color := record["color"]:
        rows.append(("color", color, color))
    if record["current"]:
        rows.append(("current", "yes", None))
    return [Section(record["name"], rows)]


def _make_ability_fields(name: str, help: str) -> tuple[Field[Record], Field[Record]]:
    because = f"no_{name}_because"
    does = field(name, lambda record: record[because] is None, help)
    return does, _field(because, "why not")


def _make_status_field(name: str, attribute: str, help: str) -> Field[Record]:
    return field(
        name, lambda record: getattr(record["status"], attribute), f"{help}; null = unknown"
    )


CHECKED_FIELDS: Fields[Record] = Fields(
    "A checked server",
    _field("server", "the server's address, with the password masked"),
    _field("context", "the context's name; null if there is none"),
    _field("queue", "the queue's name", is_bytes=True),
    field("version", lambda record: record["status"].version, "the server's version"),
    _make_status_field("memory_used_bytes", "used_bytes", "the memory that it uses"),
    _make_status_field("memory_limit_bytes", "maxmemory_bytes", "its memory limit; 0 for none"),
    _make_status_field("eviction", "eviction", "its policy at that limit"),
    _make_status_field("evicted_keys", "evicted", "the keys that it has evicted since it started"),
    _make_status_field("uptime_seconds", "uptime_s", "since it started"),
    _make_status_field(
        "last_save_age_seconds", "last_save_s", "since it last saved its data; null = not yet"
    ),
    _make_status_field("clients", "clients", "the connected clients"),
    _make_status_field("clients_limit", "maxclients", "how many there may be"),
    _make_status_field("flushes", "flushes", "the FLUSHDB and FLUSHALL since it started"),
    field("latency_ms", lambda record: round(record["latency_ms"], 3), "how long one call takes"),
    _field("user", "the ACL user"),
    _field("denied", "what the user may not do: `command`, `reason`; null = unknown"),
    *_make_ability_fields("writes", "whether the server accepts writes"),
    *_make_ability_fields("times", "whether `idle_seconds` will be known"),
    *_make_ability_fields("undo", "whether undo files can be written"),
    field("no_touch", itemgetter("has_no_touch"), "whether reading leaves idle times unchanged"),
)


def checked_sections(record: Record) -> list[Section]:
    status: ServerStatus = record["status"]
    nothing = f"nothing on {escaped(record['queue'] or b'')}"
    if record["queue"] is None:
        nothing = "unknown: name a queue with -q"
    elif record["denied"] is None:
        nothing = "unknown: servers before Redis 7 cannot be asked"
    rows: list[Line] = [
        ("server", record["server"], None),
        *(("status" * (not number), *part) for number, part in enumerate(status_parts(status))),
        ("latency", f"{record['latency_ms']:.2f} ms", None),
        ("user", escaped_text(record["user"] or "unknown"), None),
    ]
    rows += [
        ("" if number else "denied", f"rwq {denied['command']}: {denied['reason']}", "red")
        for number, denied in enumerate(record["denied"] or ())
    ] or [("denied", nothing, None)]
    no_touch = "reading an item's data or size resets its idle time"
    works = ("works", "does not work", "yellow")
    for name, why_not, yes, no, style in (
        ("writes", record["no_writes_because"], "possible", "not possible", "red"),
        ("times", record["no_times_because"], *works),
        ("undo", record["no_undo_because"], *works),
        ("no-touch", None if record["has_no_touch"] else no_touch, *works),
    ):
        rows.append((name, yes, None) if why_not is None else (name, f"{no}: {why_not}", style))
    return [Section(record["context"] or "", rows)]


GROUP_HELP = "Name servers in ~/.config/rwq/config.toml, with queue, password and protection."

_HELP = "The context's name."
NameArgument = Annotated[str, argument("NAME", _HELP, offer=offer_contexts)]
_PASSWORDS = frozenset({"password_command", "password_file"})
_PATHS = ("password_file", "tls_ca", "tls_cert", "tls_key", "undo_dir")
_NO_SUCH = "usage error, or there is no such context"


class NoContext(RwqError, code="no-context"): ...


@command(record=CONTEXT_FIELDS, reads_only=True, plain={"a context": ", ".join(LIST_COLUMNS)})
def list_(settings: Settings) -> None:
    """List the contexts. The current one is marked.

    rwq context list
    rwq context list -o json
    """
    contexts = settings.contexts
    settings.out.table(
        (context_record(context, contexts.current) for context in contexts.by_name.values()),
        CONTEXT_FIELDS,
        LIST_COLUMNS,
        plain_columns=PLAIN_COLUMNS,
        empty="No contexts; rwq context set NAME -u URL creates one.",
    )


def _show_one(settings: Settings, context: Context, current: str | None, text: str = "") -> None:
    record = context_record(context, current)
    settings.out.describe([record], CONTEXT_FIELDS, context_sections, text=text or None)


@command(record=CONTEXT_FIELDS, no="no context is in use", reads_only=True, always_table=True)
def show(
    settings: Settings,
    name: Annotated[str | None, argument("[NAME]", _HELP, offer=offer_contexts)] = None,
) -> None:
    """Show a context: NAME, else the one that is in use. Passwords are not shown.

    rwq context show
    rwq context show prod -o json
    """
    context = settings.server.context if name is None else settings.contexts.get(name)
    if context is None:
        url, origin, _ = settings.server
        raise NoContext(
            f"no context is in use: the server is {mask_shown_url(url)} ({origin})",
            "rwq context list shows all contexts",
        )
    _show_one(settings, context, settings.contexts.current)


class ContextOptions(NamedTuple):
    """What is set in a context, or removed from it."""

    settings: Settings
    password_command: Annotated[
        str | None, option("--password-command CMD", "A shell command that prints the password.")
    ] = None
    name_color: Annotated[
        Colour | None, option("--name-color", "The colour of its name in questions.")
    ] = None
    undo_dir: Annotated[
        str | None, option("--undo-dir DIR", "Where undo files are; operators may share it.")
    ] = None
    read_only: Annotated[
        bool | None, option("--read-only/--no-read-only", "Refuse changes unless --write is given.")
    ] = None
    protect: Annotated[
        Protection | None,
        option(
            "--protect",
            "none: ask unless --yes; ask: always ask on a terminal; type: ask for its name.",
        ),
    ] = None
    unset: Annotated[
        list[str] | None, option("--unset KEY", "Remove this setting (repeatable).")
    ] = None

    def values(self) -> dict[str, str | bool]:
        """Return what is set, paths without the current directory."""
        queues = self.settings.common_options.get("queue", [None])
        if len(queues) > 1:
            raise InvalidArgument("a context has one queue", "give -q once")
        # `--color` is another option.
        options = {**self._asdict(), "queue": queues[0], "color": self.name_color}
        values = {**self.settings.common_options, **options}
        return {
            key: os.path.abspath(value) if key in _PATHS else value
            for key in KEYS
            if (value := values.get(key)) is not None
        }

    def removed(self, changed: Set[str]) -> frozenset[str]:
        """Return the keys that are removed, if these are changed."""
        removed = frozenset(self.unset or ())
        for key in removed - set(KEYS):
            hint = f"known settings: {', '.join(KEYS)}"
            raise InvalidArgument(f"there is no setting {key!r}", hint)
        if not changed and not removed:
            raise InvalidArgument("nothing to set", "give -u, -q, or an option of rwq context set")
        if clash := sorted(removed & changed):
            raise InvalidArgument(f"{clash[0]} is both set and unset", "give one of them")
        passwords = _PASSWORDS & changed
        return removed | (_PASSWORDS - passwords) if passwords else removed


@command(record=CONTEXT_FIELDS, usage="usage error, or the file cannot be used", partial=UNWRITTEN)
def set_(settings: Settings, name: NameArgument, change: ContextOptions) -> None:
    """Create a context or change one, with its server (-u), queue (-q) and password. Comments in
    the file are kept.

    rwq context set dev -u local: -q jobs
    rwq context set prod -u rediss://db1:6380 --password-command 'pass show redis'
    rwq context set prod --name-color red --protect type --read-only
    rwq context set prod --unset queue --no-read-only
    """
    values = change.values()
    removed = change.removed(values.keys())
    url = str(values.get("url", LOCAL))
    if not url.startswith(LOCAL):
        from rwq_cli.core.server.address import Server, connect

        # Raises for a malformed one; nothing is sent.
        connect(Server(url))
    from rwq_cli.contexts.editing import set_context

    contexts = set_context(settings.contexts_path, name, values, removed)
    context = contexts.named(name)
    text = f"set context {context.name}: {mask_shown_url(context.url)}\n"
    _show_one(settings, context, contexts.current, text=text)
    if holds_secret(context.url):
        settings.out.note(
            f"note: the password is in {contexts.path}; --password-command keeps it out of there"
        )


@command(record=CONTEXT_FIELDS, usage=_NO_SUCH, partial=UNWRITTEN)
def use(settings: Settings, name: NameArgument) -> None:
    """Make a context the current one; - is the previous one.

    rwq context use prod
    rwq context use -
    """
    from rwq_cli.contexts.editing import use_context

    contexts = use_context(settings.contexts_path, name)
    context = contexts.named(contexts.current or name)
    text = f"{context.name} is the current context: {mask_shown_url(context.url)}\n"
    _show_one(settings, context, contexts.current, text=text)
    variables = settings.environment.variables
    for variable in ("RWQ_URL", "RWQ_CONTEXT"):
        if variables.get(variable, context.name) != context.name:
            settings.environment.note(
                f"note: {variable} is set and goes before the current context: unset {variable}"
            )


@command(record=CONTEXT_FIELDS, usage=_NO_SUCH, partial=UNWRITTEN)
def rm(
    settings: Settings,
    names: Annotated[list[str], argument("NAME...", "The contexts' names.", offer=offer_contexts)],
) -> None:
    """Remove contexts. Servers and queues stay as they are.

    rwq context rm old
    rwq context rm test-1 test-2
    """
    from rwq_cli.contexts.editing import remove_contexts

    removed = [settings.contexts.named(name) for name in dict.fromkeys(names)]
    remove_contexts(settings.contexts_path, [context.name for context in removed])
    if settings.contexts.current in names:
        settings.environment.note(
            f"note: {settings.contexts.current} was the current context; there is none now"
        )
    text = "".join(f"removed context {context.name}\n" for context in removed)
    records = [context_record(context, None) for context in removed]
    settings.out.describe(records, CONTEXT_FIELDS, is_one=False, text=text)


@command(record=CHECKED_FIELDS, ok="the server can be reached", reads_only=True, always_table=True)
def check(
    settings: Settings,
    name: Annotated[
        str | None, argument("[NAME]", f"{_HELP} Default: the server in use.", offer=offer_contexts)
    ] = None,
) -> None:
    """Connect to a context, else to the server in use, and show its version, its latency, what this
    user may not do, and whether times, undo and CLIENT NO-TOUCH work there.

    rwq context check prod -q jobs
    rwq context check -o json
    """
    if name is not None:
        if {"url", "context"} & settings.common_options.keys():
            raise InvalidArgument.both("NAME", "-u or -c")
        settings = settings.replaced(context=name)
    queue_name = settings.queue if settings.queues else None
    connection = open_connection(settings)
    queue = None if queue_name is None else WorkQueue(connection, queue_name)
    access = server_access(connection, queue)
    no_undo = explain_unwritable(find_undo_directory(settings))
    if no_undo is None and access.denied and "undo" in access.denied:
        no_undo = f"this user may not run {access.denied['undo']}"
    context, denied = settings.server.context, None
    # Permissions are checked for the queue, if there is one.
    if access.denied is not None:
        reasons = access.denied.items()
        denied = [{"command": verb, "reason": escaped_text(why)} for verb, why in reasons]
    record: Record = {
        **access._asdict(),
        "no_writes_because": refusal_in_words(access.status),
        "server": connection.name,
        "context": None if context is None else context.name,
        "queue": queue_name,
        "denied": denied,
        "no_undo_because": no_undo,
    }
    settings.out.describe([record], CHECKED_FIELDS, checked_sections)
