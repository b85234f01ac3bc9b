"""The status of the embedded server."""

from typing import Any

from rwq_cli.local import LocalStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.report import Records, Row, Section, View


def local_report(status: LocalStatus, *, answer_is_no: bool) -> Records[LocalStatus]:
    """The report of `rwq local`. `answer_is_no` exits with 1."""
    return Records(
        view=View(_fields, None, status, sections=_sections),
        records=[status],
        is_one=True,
        is_missing=lambda _status: answer_is_no,
    )


def _fields(status: LocalStatus) -> dict[str, Any]:
    return {
        "running": status.running,
        "pid": status.pid,
        "url": status.url,
        "directory": str(status.directory),
        "server": status.server,
        "used_memory_bytes": status.used_memory_bytes,
        "aof_bytes": status.aof_bytes,
        "uptime_seconds": status.uptime_s,
    }


def _sections(status: LocalStatus) -> list[Section]:
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
