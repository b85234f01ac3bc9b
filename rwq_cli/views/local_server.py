"""The status of the embedded server."""

from rwq_cli.local import LocalStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.sections import Row, Section

LOCAL_FIELDS: Fields[LocalStatus] = Fields(
    "The embedded server",
    Field("running", lambda status: status.running, "whether it runs"),
    Field("pid", lambda status: status.pid, "its process ID"),
    Field("url", lambda status: status.url, "its address"),
    Field("directory", lambda status: str(status.directory), "where its data is"),
    Field("server", lambda status: status.server, "the program and its version"),
    Field("used_memory_bytes", lambda status: status.used_memory_bytes, "the memory that it uses"),
    Field("aof_bytes", lambda status: status.aof_bytes, "the size of its append-only files"),
    Field("uptime_seconds", lambda status: status.uptime_s, "since it was started"),
)


def local_sections(status: LocalStatus) -> list[Section]:
    """The status at length."""
    directory = escaped_text(str(status.directory))
    rows: list[Row] = [
        ("running", f"yes, process {status.pid}" if status.running else "no", None),
        ("url", escaped_text(status.url), None),
        ("data", f"{directory} ({human.size(status.aof_bytes)})", None),
    ]
    if status.running:
        rows.append(("server", status.server or "unknown", None))
        rows.append(("up for", human.duration(status.uptime_s), None))
        rows.append(("memory", human.size(status.used_memory_bytes), None))
    return [Section("", rows)]
