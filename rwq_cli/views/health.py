"""The health of a server in words, and as metrics."""

from collections.abc import Sequence

from rwq_cli.core.health import NEAR_LIMIT, Refusal, ServerStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.exposition import Labels, Metric
from rwq_cli.output.sections import Piece

_YOUNG_S = 60


def refusal_in_words(status: ServerStatus) -> str | None:
    """Why a server refuses writes; None if it does not, or does not say."""
    match status.refusal:
        case None:
            return None
        case Refusal.OUT_OF_MEMORY:
            memory = memory_in_words(status)
            return f"it is out of memory ({memory})" if memory else "it is out of memory"
        case Refusal.READONLY:
            of = f" of {escaped_text(status.replicates)}" if status.replicates else ""
            return f"it is a read-only replica{of}"
        case Refusal.WRITE_ERRORS:
            return "it cannot save its data to disk"
        case Refusal.TOO_FEW_REPLICAS:
            return "too few of its replicas are connected"


def memory_in_words(status: ServerStatus) -> str | None:
    """The used memory, of how much; None if the server does not say."""
    if status.used_bytes is None:
        return None
    limit = f" of {human.size(status.maxmemory_bytes)}" if status.maxmemory_bytes else ""
    return human.size(status.used_bytes) + limit


def persistence_in_words(status: ServerStatus) -> Piece:
    if status.is_failing:
        return "cannot save", "red"
    if status.persists is None:
        return "persistence unknown", None
    if not status.persists:
        return "no persistence", "red"
    return "append-only file" if status.appends else "snapshots", None


def status_parts(status: ServerStatus) -> list[Piece]:
    """The status of a server in a few words, each with its style."""
    parts: list[Piece] = [(escaped_text(status.version), None)] if status.version else []
    if refusal := refusal_in_words(status):
        parts.append((f"refuses writes: {refusal}", "red"))
    if status.refusal is not Refusal.OUT_OF_MEMORY and (memory := memory_in_words(status)):
        # Above that, the server will soon refuse writes or evict keys.
        is_near = (status.memory_share or 0) >= NEAR_LIMIT
        parts.append((memory, "red" if is_near else None))
    if status.uptime_s is not None:
        style = "red" if status.uptime_s < _YOUNG_S else None
        parts.append((f"up {human.duration(status.uptime_s)}", style))
    if status.clients is not None:
        parts.append((human.counted(status.clients, "client"), None))
    return [*parts, persistence_in_words(status)]


def server_in_words(status: ServerStatus) -> str:
    """The status of a server in a line, with what it has lost or may have lost."""
    words = [text for text, _ in status_parts(status)]
    if status.evicted:
        words.append(f"evicted {human.counted(status.evicted, 'key')} ({status.eviction})")
    if status.flushes:
        words.append(f"flushed {human.counted(status.flushes, 'time')}")
    if status.loaded is not None:
        words.append(f"loaded {human.counted(status.loaded, 'key')} when it started")
    if status.last_save_s is not None:
        words.append(f"saved {human.duration(status.last_save_s)} ago")
    return ", ".join([status.node, *words] if status.node else words)


def server_metrics(statuses: Sequence[ServerStatus]) -> list[Metric]:
    """The metrics of a server, or of the nodes of a cluster; none could be read if it is empty."""

    def by_node(
        name: str, help: str, values: Sequence[float | None], kind: str = "gauge"
    ) -> Metric:
        pairs = zip(map(_labels, statuses), values, strict=True)
        return Metric(f"server_{name}", help, list(pairs), kind)

    is_up = [int(status.version is not None or status.node is None) for status in statuses]
    up = by_node("up", "Whether the server could be read.", is_up)
    refusals = [
        ({**_labels(status), "reason": refusal.value}, int(status.refusal is refusal))
        for status in statuses
        if status.accepts_writes is not None
        for refusal in Refusal
    ]
    return [
        up if statuses else up._replace(samples=[({}, 0)]),
        Metric("server_refuses_writes", "Whether the server refuses writes, and why.", refusals),
        *(
            by_node(name, help, [getattr(status, attribute) for status in statuses], kind)
            for name, attribute, help, kind in _METRICS
        ),
    ]


_METRICS = (
    ("memory_used_bytes", "used_bytes", "Memory that counts towards the limit.", "gauge"),
    ("memory_limit_bytes", "maxmemory_bytes", "The memory limit; 0 for none.", "gauge"),
    ("evicted_keys_total", "evicted", "Keys evicted since the start.", "counter"),
    ("flushes_total", "flushes", "FLUSHDB and FLUSHALL since the start.", "counter"),
    ("uptime_seconds", "uptime_s", "Seconds since the start.", "gauge"),
    ("last_save_age_seconds", "last_save_s", "Seconds since the last save.", "gauge"),
    ("unsaved_changes", "unsaved", "Changes since the last save.", "gauge"),
    ("clients", "clients", "Connected clients.", "gauge"),
    ("clients_limit", "maxclients", "How many clients may be connected.", "gauge"),
)


def _labels(status: ServerStatus) -> Labels:
    return {"node": status.node} if status.node else {}
