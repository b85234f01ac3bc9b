"""Opens the server and the queues that the settings name."""

import os
from collections.abc import Sequence
from pathlib import Path

from rwq_cli.cli.interrupts import cancel_on_interrupt
from rwq_cli.cli.settings import Settings
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.address import Server, connect
from rwq_cli.core.server.connection import Connection
from rwq_cli.output.escape import escaped

LOCAL = "local:"


def open_connection(settings: Settings) -> Connection:
    """Connect to the server that the settings name; start an embedded one if necessary.

    Raises:
        InvalidArgument: The URL is malformed, or the password file cannot be read.
        LocalServerError: The embedded server could not be started.
    """
    password = settings.password
    url = settings.url
    if url.startswith(LOCAL):
        url = _local_url(settings)
    connection = connect(
        Server(
            url=url,
            password=password,
            password_first=settings.given.get("password_file") is not None,
            tls_ca=settings.path("tls_ca"),
            tls_cert=settings.path("tls_cert"),
            tls_key=settings.path("tls_key"),
            tls_insecure=bool(settings.given.get("tls_insecure")),
        )
    )
    cancel_on_interrupt(connection.stop)
    if settings.verbose:
        settings.environment.note(f"server {connection.name}")
    environment = settings.environment
    if environment.stderr_is_terminal and not (environment.stdout_is_pipe or settings.quiet):
        from rwq_cli.output.progress import TerminalProgress

        settings.progress = TerminalProgress(environment, colour=settings.stderr_colour)
        connection.progress = settings.progress
    return connection


def local_directory(settings: Settings, url: str) -> Path:
    """The data directory that a `local:` URL names."""
    from rwq_cli.local import default_directory

    named = url[len(LOCAL) :]
    if named:
        return Path(os.path.abspath(os.path.expanduser(named)))
    return default_directory(settings.environment.variables)


def _local_url(settings: Settings) -> str:
    """Start the embedded server if necessary, and return the URL of its socket."""
    from rwq_cli.local import LocalServer

    directory = local_directory(settings, settings.url)
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
    connection = open_connection(settings)
    if settings.verbose:
        for name in names:
            settings.environment.note(f"queue {escaped(name)}")
    return [WorkQueue(connection, name, holder=settings.holder) for name in names]
