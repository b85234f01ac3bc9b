"""Opens the server and the queues that the settings name."""

import gc
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.cli.interrupts import cancel_on_interrupt
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.target import LOCAL
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.views.naming import Naming

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.views.command_lines import CommandLines


class Password(NamedTuple):
    """A password outside the URL.

    Attributes:
        value: The password; None if there is none.
        origin: Where it comes from, such as `RWQ_PASSWORD`.
        is_first: True if it is preferred to one in the URL.
    """

    value: str | None
    origin: str
    is_first: bool = False


def open_connection(settings: Settings) -> "Connection":
    """Connect to the server that the settings name; start an embedded one if necessary.

    Raises:
        InvalidArgument: The URL is malformed, the context cannot be used or is read-only, or the
            password file cannot be read.
        PasswordCommandFailed: The context's password command gave no password.
        LocalServerError: The embedded server could not be started.
    """
    # redis takes half of a start, and `--help` needs none of it.
    from rwq_cli.core.server.address import Server, connect

    url = settings.url
    if url.startswith(LOCAL):
        url = _local_url(settings)
    settings.check_read_only()
    password = _password(settings)
    connection = connect(
        Server(
            url=url,
            password=_password_again(settings, password),
            password_first=password.is_first,
            tls_ca=settings.path("tls_ca"),
            tls_cert=settings.path("tls_cert"),
            tls_key=settings.path("tls_key"),
            tls_insecure=bool(settings.given.get("tls_insecure")),
            connect_timeout_s=settings.connect_timeout_s,
            reply_timeout_s=settings.reply_timeout_s,
            patience_s=settings.patience_s,
            sentinel_password=_sentinel_password(settings),
        )
    )
    connection.on_wait = lambda line: settings.environment.note(escaped_text(line))
    cancel_on_interrupt(connection.stop)
    if settings.verbose:
        _, origin, context = settings.server
        where = f"{origin}, context {context.name}" if context is not None else origin
        settings.environment.note(f"server {connection.name} ({where})")
        if password.value is not None:
            settings.environment.note(f"password ({password.origin})")
        settings.environment.note(f"output {settings.output} ({settings.output_origin})")
    environment = settings.environment
    if environment.stderr_is_terminal and not (environment.stdout_is_pipe or settings.quiet):
        from rwq_cli.output.progress import TerminalProgress

        settings.progress = TerminalProgress(environment, colour=settings.stderr_colour)
        connection.progress = settings.progress
    if not gc.isenabled():
        # `__main__` imports with the collector disabled; it need not traverse what was imported.
        gc.freeze()
        gc.enable()
    return connection


def _password(settings: Settings) -> Password:
    """The password: that of `--password-file`, else the context's, else RWQ_PASSWORD.

    RWQ_PASSWORD is for a server that was named by its URL: no other server may see it.
    """
    named = settings.path("password_file")
    context = settings.server.context
    if named is None and context is None:
        return Password(settings.environment.variables.get("RWQ_PASSWORD"), "RWQ_PASSWORD")
    if named is None and context is not None and not context.has_password:
        return Password(None, f"context {context.name}")
    from rwq_cli.contexts.password import password_of, read_password_file

    if named is not None:
        value = read_password_file(named, "--password-file")
        return Password(value, "--password-file", is_first=True)
    assert context is not None
    return Password(password_of(context, settings.contexts.path), f"context {context.name}")


def _password_again(
    settings: Settings, password: Password
) -> str | Callable[[], str | None] | None:
    """The password, or what reads its file or runs its command again for each later connection."""
    if password.value is None or password.origin == "RWQ_PASSWORD":
        return password.value
    first = iter([password.value])
    return lambda: next(first, None) or _password(settings).value


def _sentinel_password(settings: Settings) -> str | None:
    """The password of the Sentinels; like RWQ_PASSWORD, it is for no context's server."""
    if settings.server.context is not None:
        return None
    return settings.environment.variables.get("RWQ_SENTINEL_PASSWORD")


_TLS_OPTIONS = {"tls_ca": "ssl_ca_certs", "tls_cert": "ssl_certfile", "tls_key": "ssl_keyfile"}


def server_variables(settings: Settings) -> dict[bytes, bytes | None]:
    """The environment variables that let another rwq reach this server; None for those to unset.

    A context's server is named by the context, whose password stays where it is, unless options
    replace something of it.
    """
    url, _, context = settings.server
    replaced = ("password_file", *_TLS_OPTIONS, "tls_insecure")
    if context is not None and not any(settings.given.get(name) for name in replaced):
        named = {"RWQ_URL": None, "RWQ_CONTEXT": context.name}
    else:
        from urllib.parse import quote

        from rwq_cli.core.server.masking import without_password

        password = _password(settings)
        if url.startswith(LOCAL):
            url = f"{LOCAL}{settings.local_directory(url)}"
        elif password.is_first:
            url = without_password(url)
        options = [
            f"{option}={quote(os.path.abspath(path))}"
            for name, option in _TLS_OPTIONS.items()
            if (path := settings.path(name)) is not None
        ]
        if settings.given.get("tls_insecure"):
            options += ["ssl_cert_reqs=none", "ssl_check_hostname=false"]
        if options:
            url += ("&" if "?" in url else "?") + "&".join(options)
        named = {"RWQ_URL": url, "RWQ_CONTEXT": None, "RWQ_PASSWORD": password.value}
    return {
        os.fsencode(name): None if value is None else os.fsencode(value)
        for name, value in named.items()
    }


def naming(settings: Settings, queue: WorkQueue, *, is_prefixed: bool = False) -> Naming:
    """How a report names this queue and its server."""

    def summary_end() -> str:
        if settings.target_from_env:
            return ""
        return summary_end_of(settings, None if is_prefixed else escaped(queue.name))

    return Naming(summary_end, cache(lambda: command_lines(settings, queue.connection)))


def summary_end_of(settings: Settings, queues: str | None) -> str:
    """The end of a summary: these queues, unless they are named before, and the server."""
    return f" ({queues + ' ' if queues else ''}on {settings.server_label})"


def command_lines(settings: Settings, connection: "Connection") -> "CommandLines":
    """Makes command lines that can be pasted: they reach this server, and hold no password."""
    from rwq_cli.core.server.masking import without_password
    from rwq_cli.views.command_lines import CommandLines, redis_cli, shell_word

    url, _, context = settings.server
    words = [] if settings.target_from_env else ["-u", url]
    if words and context is not None:
        words = ["-c", context.name]
    elif words and not url.startswith(LOCAL):
        words = ["-u", without_password(url)]
        if words[1] != url and settings.is_for_people:
            settings.environment.note(
                "note: the command lines leave the password out; give it in RWQ_PASSWORD or with "
                "--password-file",
                once=True,
            )
    for name in ("password_file", "tls_ca", "tls_cert", "tls_key"):
        if (path := settings.given.get(name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(path)]
    words += ["--tls-insecure"] if settings.given.get("tls_insecure") else []
    shown = (shell_word(os.fsencode(word)) for word in words)
    return CommandLines("".join(f" {word}" for word in shown), redis_cli(connection.primary_url))


def _local_url(settings: Settings) -> str:
    """Start the embedded server if necessary, and return the URL of its socket."""
    from rwq_cli.local import LocalServer

    directory = settings.local_directory(settings.url)
    server = LocalServer(directory, settings.environment.variables)
    server.ensure_running()
    return server.url


def open_queue(settings: Settings) -> WorkQueue:
    """The one queue that the settings name; see `open_connection`.

    Raises:
        InvalidArgument: No queue is named, or several are.
    """
    (queue,) = _open(settings, [settings.queue])
    return queue


def open_queues(settings: Settings) -> list[WorkQueue]:
    """The queues that the settings name, each once, on one connection; see `open_connection`.

    Raises:
        InvalidArgument: No queue is named.
    """
    return _open(settings, list(dict.fromkeys(settings.queues)) or [settings.queue])


def _open(settings: Settings, names: Sequence[bytes]) -> list[WorkQueue]:
    for name in names:
        # Raises for an empty name.
        QueueKeys(name)
    return queue_handles(settings, open_connection(settings), names, settings.queue_origin)


def queue_handles(
    settings: Settings, connection: "Connection", names: Sequence[bytes], origin: str
) -> list[WorkQueue]:
    """The queues with these names, which come from `origin`, on an open connection."""
    if settings.verbose:
        for name in names:
            settings.environment.note(f"queue {escaped(name)} ({origin})", once=True)
    return [WorkQueue(connection, name, holder=settings.holder) for name in names]
