"""`rwq local`: start, stop and inspect the embedded server."""

from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.target import LOCAL
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.local import LocalServer
from rwq_cli.views.local_server import LOCAL_FIELDS, local_sections

app = CommandModule("Start, stop or inspect the embedded server behind -u local:.")

Directory = Annotated[
    str | None,
    typer.Argument(
        metavar="[DIR]",
        help="Data directory. Default: that of -u local:DIR, else ~/.local/state/rwq/local.",
    ),
]


@app.command(
    record=LOCAL_FIELDS,
    help="Start the embedded server if it is not running. -u local: starts it when needed.",
    examples=("rwq local start", "rwq local start ./data"),
    always_table=True,
)
def start(settings: Settings, directory: Directory = None) -> ExitStatus:
    server = _server(settings, directory)
    server.ensure_running(reply_timeout_s=settings.reply_timeout_s)
    settings.out.describe([server.status()], LOCAL_FIELDS, local_sections)
    return ExitStatus.OK


@app.command(
    record=LOCAL_FIELDS,
    help="Stop the embedded server and keep its data.",
    examples=("rwq local stop",),
    exits={ExitStatus.NO: "it was not running"},
    always_table=True,
)
def stop(settings: Settings, directory: Directory = None) -> ExitStatus:
    server = _server(settings, directory)
    was_running = server.stop()
    settings.out.describe([server.status()], LOCAL_FIELDS, local_sections)
    return ExitStatus.OK if was_running else ExitStatus.NO


@app.command(
    record=LOCAL_FIELDS,
    help="Show whether the embedded server is running, and where.",
    examples=("rwq local status -o json",),
    exits={ExitStatus.NO: "it is not running"},
    reads_only=True,
    always_table=True,
)
def status(settings: Settings, directory: Directory = None) -> ExitStatus:
    now = _server(settings, directory).status()
    settings.out.describe([now], LOCAL_FIELDS, local_sections)
    return ExitStatus.OK if now.running else ExitStatus.NO


def _server(settings: Settings, directory: str | None) -> LocalServer:
    url = settings.server.url
    url = url if url.startswith(LOCAL) else LOCAL
    if directory is not None:
        url = LOCAL + directory
    return LocalServer(settings.local_directory(url), settings.environment.variables)
