"""From the settings of a run to the server and the queue."""

import os
from collections.abc import Sequence
from pathlib import Path

from rwq_cli.cli.interrupts import listen
from rwq_cli.cli.settings import Settings
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.address import Server, connect
from rwq_cli.core.server.connection import Connection
from rwq_cli.output.escape import escaped

LOCAL = "local:"


def open_connection(settings: Settings) -> Connection:
    """The server that the settings name; `local:` is started if it does not run.

    Raises:
        InvalidArgument: The URL is malformed.
        LocalServerError: The embedded server could not be started.
    """
    url = settings.url
    if url.startswith(LOCAL):
        url = local_url(settings, url)
    connection = connect(
        Server(
            url=url,
            password=settings.password,
            password_first=settings.given.get("password_file") is not None,
            tls_ca=settings.path("tls_ca"),
            tls_cert=settings.path("tls_cert"),
            tls_key=settings.path("tls_key"),
            tls_insecure=bool(settings.given.get("tls_insecure")),
        )
    )
    listen(connection.stop)
    if settings.verbose:
        settings.environment.note(f"server {connection.name}")
    if settings.environment.stderr_is_terminal and not settings.environment.stdout_is_pipe:
        from rwq_cli.output.progress import TerminalProgress

        settings.progress = connection.progress = TerminalProgress(settings.environment)
    return connection


def local_directory(settings: Settings, url: str) -> Path:
    """The data directory that a `local:` URL names."""
    from rwq_cli.local import default_directory

    named = url[len(LOCAL) :]
    if named:
        return Path(os.path.abspath(os.path.expanduser(named)))
    return default_directory(settings.environment.variables)


def local_url(settings: Settings, url: str) -> str:
    """Start the embedded server that a `local:` URL names, and return the URL of its socket."""
    from rwq_cli.local import LocalServer

    server = LocalServer(local_directory(settings, url), settings.environment.variables)
    server.ensure_running()
    return server.url


def open_queue(settings: Settings) -> WorkQueue:
    """The queue that the settings name, on its server.

    Raises:
        InvalidArgument: No queue was named, or several, or the URL is malformed.
        LocalServerError: The embedded server could not be started.
    """
    (queue,) = _open(settings, [settings.queue])
    return queue


def open_queues(settings: Settings) -> list[WorkQueue]:
    """The queues that the settings name, each once, on one connection to their server.

    Raises:
        InvalidArgument: No queue was named, or the URL is malformed.
        LocalServerError: The embedded server could not be started.
    """
    return _open(settings, list(dict.fromkeys(settings.queues)) or [settings.queue])


def _open(settings: Settings, names: Sequence[bytes]) -> list[WorkQueue]:
    for name in names:
        QueueKeys(name)
    connection = open_connection(settings)
    if settings.verbose:
        for name in names:
            settings.environment.note(f"queue {escaped(name)}")
    return [WorkQueue(connection, name, holder=settings.holder) for name in names]
