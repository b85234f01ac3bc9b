"""`rwq local`: start, stop and inspect the embedded server."""

from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.settings import LOCAL, Settings
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.local import LocalServer
from rwq_cli.output.report import Report
from rwq_cli.views.local_server import local_report

app = CommandModule("Start, stop or inspect the embedded server behind -u local:.")

Directory = Annotated[
    str | None,
    typer.Argument(
        metavar="[DIR]",
        help="Data directory. Default: that of -u local:DIR, else ~/.local/state/rwq/local.",
    ),
]


@app.command(
    help="Start the embedded server if it is not running. -u local: starts it when needed.",
    examples=("rwq local start", "rwq local start ./data"),
    describes=True,
)
def start(settings: Settings, directory: Directory = None) -> Report:
    server = _server(settings, directory)
    server.ensure_running()
    return local_report(server.status(), answer_is_no=False)


@app.command(
    help="Stop the embedded server and keep its data.",
    examples=("rwq local stop",),
    exits={ExitStatus.NO: "it was not running"},
    describes=True,
)
def stop(settings: Settings, directory: Directory = None) -> Report:
    server = _server(settings, directory)
    was_running = server.stop()
    return local_report(server.status(), answer_is_no=not was_running)


@app.command(
    help="Show whether the embedded server is running, and where.",
    examples=("rwq local status -o json",),
    exits={ExitStatus.NO: "it is not running"},
    reads_only=True,
    describes=True,
)
def status(settings: Settings, directory: Directory = None) -> Report:
    now = _server(settings, directory).status()
    return local_report(now, answer_is_no=not now.running)


def _server(settings: Settings, directory: str | None) -> LocalServer:
    url = settings.url if settings.url.startswith(LOCAL) else LOCAL
    if directory is not None:
        url = LOCAL + directory
    return LocalServer(settings.local_directory(url), settings.environment.variables)
