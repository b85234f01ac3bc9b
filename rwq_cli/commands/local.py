"""`rwq local`: start, stop and inspect the embedded server."""

from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import LOCAL, local_directory
from rwq_cli.cli.settings import Settings
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.local import LocalServer, LocalStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Detail, Report, Section, View

app = CommandModule("Start, stop or inspect the embedded server, which -u local: uses.")


Directory = Annotated[
    str | None,
    typer.Argument(
        metavar="[DIR]", help="Its data directory. Else that of -u local:DIR, else the default."
    ),
]


@app.command(
    help="Start the embedded server unless it runs. -u local: does so when needed.",
    examples=("rwq local start", "rwq local start ./data"),
)
def start(settings: Settings, directory: Directory = None) -> Report:
    server = _server(settings, directory)
    server.ensure_running()
    return _detail(server.status(), fails=False)


@app.command(
    help="Stop the embedded server and keep its data.",
    examples=("rwq local stop",),
    exits={ExitStatus.NO: "it was not running"},
)
def stop(settings: Settings, directory: Directory = None) -> Report:
    server = _server(settings, directory)
    was_running = server.stop()
    return _detail(server.status(), fails=not was_running)


@app.command(
    help="Show whether the embedded server runs, and where.",
    examples=("rwq local status -o json",),
    exits={ExitStatus.NO: "it is not running"},
    reads_only=True,
)
def status(settings: Settings, directory: Directory = None) -> Report:
    now = _server(settings, directory).status()
    return _detail(now, fails=not now.running)


def _server(settings: Settings, directory: str | None) -> LocalServer:
    url = settings.url if settings.url.startswith(LOCAL) else LOCAL
    if directory is not None:
        url = LOCAL + directory
    return LocalServer(local_directory(settings, url))


def _detail(now: LocalStatus, *, fails: bool) -> Report:
    view: View[LocalStatus] = View((), _fields, lambda _status: None, now)
    return Detail(
        view=view,
        records=[now],
        sections=_sections,
        one_only=True,
        is_missing=lambda _status: fails,
    )


def _fields(now: LocalStatus) -> dict[str, Any]:
    return {
        "running": now.running,
        "pid": now.pid,
        "url": now.url,
        "directory": str(now.directory),
        "server": now.server,
        "used_memory_bytes": now.used_memory_bytes,
        "aof_bytes": now.aof_bytes,
        "uptime_seconds": now.uptime_s,
    }


def _sections(now: LocalStatus) -> list[Section]:
    rows: list[tuple[str, str, str | None]] = [
        ("running", f"yes, process {now.pid}" if now.running else "no", None),
        ("url", escaped(now.url.encode()), None),
        ("data", f"{escaped(str(now.directory).encode())} ({human.size(now.aof_bytes)})", None),
    ]
    if now.running:
        rows.append(("server", now.server or "unknown", None))
        rows.append(("up for", human.duration(now.uptime_s), None))
        rows.append(("memory", human.size(now.used_memory_bytes), None))
    return [Section("", rows)]
