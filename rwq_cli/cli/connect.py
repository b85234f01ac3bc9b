"""Opens the server and the queues that the settings name, and names them in messages."""

import gc
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rwq_cli.cli.interrupts import cancel_on_interrupt
from rwq_cli.cli.settings import LOCAL, Settings
from rwq_cli.output.escape import escaped, escaped_text

if TYPE_CHECKING:
    from rwq_cli.contexts.file import Context
    from rwq_cli.core.errors import ServerError
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.views.command_lines import CommandLines

# The options that name files for TLS, with redis-py's names.
_TLS_FILES = {"tls_ca": "ssl_ca_certs", "tls_cert": "ssl_certfile", "tls_key": "ssl_keyfile"}
_FILES = ("password_file", *_TLS_FILES)


# What names the server of the run, and its password, in hints of the core.
_BY_URL = "-u or RWQ_URL"


def open_connection(settings: Settings, *, named_by: str = _BY_URL) -> "Connection":
    """Connect to the server that the settings name; start an embedded one if necessary."""
    # `named_by` is what gives its URL, if no context does, for the hint of an error.
    # redis takes half of a start, and `--help` needs none of it.
    from rwq_cli.core.server.address import Server, connect

    url, origin, context = settings.server
    given, environment = settings.given, settings.environment
    variables = environment.variables
    if url.startswith(LOCAL):
        server = settings.local_server(url)
        server.ensure_running(reply_timeout_s=settings.reply_timeout_s)
        url = server.url
    settings.check_read_only()
    password, password_origin = _password(settings)
    read: str | Callable[[], str | None] | None = password
    if password is not None and password_origin != "RWQ_PASSWORD":
        # Its file or command is read again for each later connection.
        first = iter([password])
        read = lambda: next(first, None) or _password(settings)[0]  # noqa: E731
    connection = connect(
        Server(
            url=url,
            password=read,
            password_first="password_file" in given,
            **{name: Path(given[name]) for name in _TLS_FILES if name in given},
            tls_insecure=bool(given.get("tls_insecure")),
            connect_timeout_s=settings.connect_timeout_s,
            reply_timeout_s=settings.reply_timeout_s,
            patience_s=settings.patience_s,
            # Like RWQ_PASSWORD, it is for no context's server.
            sentinel_password=None if context else variables.get("RWQ_SENTINEL_PASSWORD"),
        )
    )
    connection.on_wait = lambda line: environment.note(escaped_text(line))
    if context is not None or named_by != _BY_URL:
        place = named_by if context is None else f"the url of context {context.name}"
        connection.explain = lambda error: _name_setting(error, place, context)
    cancel_on_interrupt(connection.stop)
    if settings.verbose:
        where = f"{origin}, context {context.name}" if context is not None else origin
        environment.note(f"server {connection.name} ({where})")
        if password is not None:
            environment.note(f"password ({password_origin})")
        environment.note(f"output {settings.output} ({settings.output_origin})")
    if settings.progress is not None:
        connection.progress = settings.progress
    if not gc.isenabled():
        # `__main__` imports with the collector disabled; it need not traverse what was imported.
        gc.freeze()
        gc.enable()
    return connection


def _name_setting(error: "ServerError", place: str, context: "Context | None") -> None:
    """Change the hint of a server that cannot be reached to the settings that name this one."""
    from rwq_cli.core import errors

    if isinstance(error, errors.SentinelAuthenticationFailed):
        error.hint = f"put ?sentinel_password=... into {place}"
    elif isinstance(error, errors.AuthenticationFailed):
        error.hint = f"check the password in {place}, or use a context that has it"
        if context is not None:
            error.hint = f"check the password_command or password_file of context {context.name}"
    elif isinstance(error, errors.Unreachable) and error.hint is not None:
        error.hint = error.hint.replace(_BY_URL, place)


def _password(settings: Settings) -> tuple[str | None, str]:
    """The password outside the URL, and where it is from."""
    # RWQ_PASSWORD is for a server that was named by its URL: no other server may see it.
    file, context = settings.given.get("password_file"), settings.server.context
    if file is not None:
        from rwq_cli.contexts.password import read_password_file

        return read_password_file(Path(file), "--password-file"), "--password-file"
    if context is None:
        given = settings.environment.variables.get("RWQ_PASSWORD")
        # A secret that was made by `echo` ends in a line end, as a file does.
        return given and given.removesuffix("\n").removesuffix("\r"), "RWQ_PASSWORD"
    origin = f"context {context.name}"
    if context.password_command is context.password_file is None:
        return None, origin
    from rwq_cli.contexts.password import password_of

    return password_of(context, settings.contexts.path), origin


def server_variables(settings: Settings) -> dict[bytes, bytes | None]:
    # A context's server is named by the context, whose password stays where it is, unless options
    # replace something of it.
    url, _, context = settings.server
    given = settings.given
    named: dict[str, str | None]
    if context is not None and not any(given.get(name) for name in (*_FILES, "tls_insecure")):
        named = {"RWQ_URL": None, "RWQ_CONTEXT": context.name}
    else:
        from urllib.parse import quote

        from rwq_cli.core.server.urls import without_password

        password, _ = _password(settings)
        if url.startswith(LOCAL):
            url = f"{LOCAL}{settings.local_server(url).directory}"
        elif "password_file" in given:
            url = without_password(url)
        options = [
            f"{option}={quote(os.path.abspath(given[name]))}"
            for name, option in _TLS_FILES.items()
            if name in given
        ]
        if given.get("tls_insecure"):
            options += ["ssl_cert_reqs=none", "ssl_check_hostname=false"]
        if options:
            url += ("&" if "?" in url else "?") + "&".join(options)
        named = {"RWQ_URL": url, "RWQ_CONTEXT": None, "RWQ_PASSWORD": password}
    return {
        os.fsencode(name): None if value is None else os.fsencode(value)
        for name, value in named.items()
    }


def summary_end(settings: Settings, queues: str | None) -> str:
    """The end of a summary about queues, None if a prefix names them; see `target_from_env`."""
    if settings.target_from_env:
        return ""
    return f" ({queues + ' ' if queues else ''}on {settings.server_label})"


def command_lines(settings: Settings, connection: "Connection") -> "CommandLines":
    """Makes command lines that can be pasted: they reach this server, and hold no password."""
    from rwq_cli.core.server.urls import without_password
    from rwq_cli.views.command_lines import CommandLines, redis_cli, shell_word

    url, _, context = settings.server
    shown = url if url.startswith(LOCAL) else without_password(url)
    words, there = ["-u", shown], ["--to-url", shown]
    if context is not None:
        words, there = ["-c", context.name], ["--to-context", context.name]
    if settings.target_from_env:
        words = []
    elif context is None and shown != url and settings.is_for_people:
        settings.environment.note(
            "note: the command lines leave the password out; give it in RWQ_PASSWORD or with "
            "--password-file",
            once=True,
        )
    for name in _FILES:
        if (path := settings.given.get(name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(path)]
    words += ["--tls-insecure"] if settings.given.get("tls_insecure") else []
    server, to = (
        "".join(f" {shell_word(os.fsencode(word))}" for word in each) for each in (words, there)
    )
    return CommandLines(server, redis_cli(connection.primary_url), to)


def open_queue(settings: Settings) -> "WorkQueue":
    return open_queues(settings, [settings.queue])[0]


def open_queues(settings: Settings, names: Sequence[bytes] = ()) -> "list[WorkQueue]":
    """The queues, each once, on one connection; without names, those that the settings name."""
    names = names or list(dict.fromkeys(settings.queues)) or [settings.queue]
    return queue_handles(settings, open_connection(settings), names, settings.queue_origin)


def queue_handles(
    settings: Settings, connection: "Connection", names: Sequence[bytes], origin: str
) -> "list[WorkQueue]":
    """The queues with these names, which come from `origin`, on an open connection."""
    from rwq_cli.core.queue import WorkQueue

    if settings.verbose:
        for name in names:
            settings.environment.note(f"queue {escaped(name)} ({origin})", once=True)
    return [WorkQueue(connection, name, holder=settings.holder) for name in names]
