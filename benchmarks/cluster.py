"""A private cluster of three primaries."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import redis
from redis.cluster import ClusterNode

from benchmarks.server import binaries

_HOST = "127.0.0.1"
_NODES = 3
_SLOTS = 16384


@contextmanager
def bench_cluster() -> Iterator[tuple[str, list[ClusterNode]]]:
    """Three primaries without persistence, while the block runs: the URL and the nodes."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rwq-bench-")))
        ports = _free_ports(2 * _NODES)
        nodes = list(zip(ports[:_NODES], ports[_NODES:], strict=True))
        for number, (port, bus) in enumerate(nodes):
            folder = root / str(number)
            folder.mkdir()
            _write_nodes(folder / "nodes.conf", number, nodes)
            words = ("--port", port, "--bind", _HOST, "--dir", folder, "--save", "")
            words += ("--cluster-enabled", "yes", "--cluster-port", bus)
            process = subprocess.Popen(
                [str(binaries() / "valkey-server"), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        for port, _ in nodes:
            _wait_for(port)
        hosts = ",".join(f"{_HOST}:{port}" for port, _ in nodes)
        yield f"redis+cluster://{hosts}", [ClusterNode(_HOST, port) for port, _ in nodes]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server((_HOST, 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def _write_nodes(file: Path, me: int, nodes: list[tuple[int, int]]) -> None:
    """What a node knows of the cluster when it starts: quicker than to let them meet."""
    lines = []
    for number, (port, bus) in enumerate(nodes):
        node_id = f"{number + 1:x}".rjust(40, "0")
        flags = "myself,master" if number == me else "master"
        first, last = _SLOTS * number // _NODES, _SLOTS * (number + 1) // _NODES - 1
        place = f"{_HOST}:{port}@{bus}"
        lines.append(f"{node_id} {place} {flags} - 0 0 {number + 1} connected {first}-{last}\n")
    file.write_text("".join(lines) + f"vars currentEpoch {_NODES} lastVoteEpoch 0\n")


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    with redis.Redis(_HOST, port) as client:
        while True:
            with suppress(redis.ConnectionError):
                if client.cluster("INFO")["cluster_state"] == "ok":
                    return
            if time.monotonic() > deadline:
                raise TimeoutError("the cluster did not come up")
            time.sleep(0.01)
