"""`rwq local`: start, stop and inspect the embedded server."""

from typing import Annotated

from rwq_cli.cli.settings import LOCAL
from rwq_cli.commands import ExitStatus, Settings, argument, command
from rwq_cli.local.server import AOF_CUT, LocalServer, LocalStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.field import Fields, field
from rwq_cli.output.sections import Line, Section

LOCAL_FIELDS: Fields[LocalStatus] = Fields(
    "The embedded server",
    field("running", "running", "whether it runs"),
    field("pid", "pid", "its process ID"),
    field("url", "url", "its address"),
    field("directory", lambda status: str(status.directory), "where its data is"),
    field("server", "server", "the program and its version"),
    field("used_memory_bytes", "used_memory_bytes", "the memory that it uses"),
    field("aof_bytes", "aof_bytes", "the size of its append-only files"),
    field("aof_cut", "aof_cut", "whether a crash cut them before its last start"),
    field("uptime_seconds", "uptime_s", "since it was started"),
)


def local_sections(status: LocalStatus) -> list[Section]:
    size = f" ({human.size(status.aof_bytes)})" if status.aof_bytes is not None else ""
    rows: list[Line] = [
        ("running", f"yes, process {status.pid}" if status.running else "no", None),
        ("url", escaped_text(status.url), None),
        ("data", f"{escaped_text(str(status.directory))}{size}", None),
    ]
    if status.running:
        rows.append(("server", status.server or "unknown", None))
        rows.append(("up for", human.duration(status.uptime_s), None))
        rows.append(("memory", human.size(status.used_memory_bytes), None))
    return [Section("", rows)]


GROUP_HELP = "Start, stop or inspect the embedded server behind -u local:."

Directory = Annotated[
    str | None, argument("[DIR]", "Default: that of -u local:DIR, else ~/.local/state/rwq/local.")
]


@command(record=LOCAL_FIELDS, always_table=True)
def start(settings: Settings, directory: Directory = None) -> None:
    """Start the embedded server if it is not running. -u local: starts it when needed.

    rwq local start
    rwq local start ./data
    """
    server = _server(settings, directory)
    server.ensure_running(reply_timeout_s=settings.reply_timeout_s)
    now = server.status()
    settings.out.describe([now], LOCAL_FIELDS, local_sections)
    if now.aof_cut:
        settings.environment.note(f"rwq: {AOF_CUT}")


@command(record=LOCAL_FIELDS, no="it was not running", always_table=True)
def stop(settings: Settings, directory: Directory = None) -> ExitStatus:
    """Stop the embedded server and keep its data.

    rwq local stop
    """
    server = _server(settings, directory)
    was_running = server.stop()
    settings.out.describe([server.status()], LOCAL_FIELDS, local_sections)
    return ExitStatus.OK if was_running else ExitStatus.NO


@command(record=LOCAL_FIELDS, no="it is not running", reads_only=True, always_table=True)
def status(settings: Settings, directory: Directory = None) -> ExitStatus:
    """Show whether the embedded server is running, and where.

    rwq local status -o json
    """
    now = _server(settings, directory).status()
    settings.out.describe([now], LOCAL_FIELDS, local_sections)
    return ExitStatus.OK if now.running else ExitStatus.NO


def _server(settings: Settings, directory: str | None) -> LocalServer:
    url = settings.server.url if directory is None else LOCAL + directory
    return settings.local_server(url if url.startswith(LOCAL) else LOCAL)
