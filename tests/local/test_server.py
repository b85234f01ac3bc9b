"""Starting, stopping and inspecting a local server."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import rwq_cli
from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.server import LocalServer, throwaway
from tests.driver import until
from tests.local.conftest import NewServer
from tests.local.helpers import client, has_exited, kill, pid_of, starts_of

ROOT = Path(rwq_cli.__file__).parents[1]


# Starting


def test_it_keeps_an_aof_and_has_only_its_socket(
    local_server: LocalServer,
) -> None:
    local_server.ensure_running()
    expected = {
        "port": "0",
        "unixsocketperm": "700",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "dir": str(local_server.directory),
        "maxmemory-policy": "noeviction",
        "logfile": str(local_server.directory / "server.log"),
    }
    with client(local_server) as connection:
        assert {name: connection.config_get(name)[name] for name in expected} == expected
        assert connection.info("server")["config_file"] == ""


def test_concurrent_starts_start_one_server(
    local_server: LocalServer, new_server: NewServer
) -> None:
    servers = [new_server(local_server.directory) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda server: server.ensure_running(), servers))
    assert {pid_of(server) for server in servers} == {pid_of(local_server)}
    assert starts_of(local_server) == 1


# A program of its own, so that no fork of pytest runs the rest of pytest.
_INTERRUPTED = """
import os, random, signal, sys, time
from pathlib import Path
from rwq_cli.local.server import LocalServer

server, number = LocalServer(Path(sys.argv[1]), os.environ), signal.Signals[sys.argv[2]]
signal.signal(signal.SIGINT, signal.default_int_handler)
# An interrupt that comes in a finalizer is only printed.
sys.unraisablehook = lambda _: None
for turn in range(20):
    child = os.fork()
    if not child:
        try:
            server.ensure_running()
        finally:
            os._exit(0)
    os.setpgid(child, child)
    time.sleep(0.001 + turn * 0.0006)
    # Like Ctrl-C in a terminal, to the whole process group.
    os.killpg(child, number)
    os.waitpid(child, 0)
    server.ensure_running()
    print(server.stop())
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGKILL"])
def test_an_interrupted_start_spares_the_next(
    local_server: LocalServer, environ: dict[str, str], number: str
) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(local_server.directory), number],
        env={**environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.split() == ["True"] * 20
    assert starts_of(local_server) == 20


def test_it_outlives_its_starter_without_its_files(
    local_server: LocalServer, environ: dict[str, str], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    code = (
        "import os, sys; from pathlib import Path; from rwq_cli.local.server import LocalServer\n"
        "LocalServer(Path(sys.argv[1]), os.environ).ensure_running()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(local_server.directory)],
        env={**environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        pass_fds=(writer,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(writer)
    # This would not return if the server kept the standard streams open.
    output = starter.communicate()
    assert (starter.returncode, *output) == (0, b"", b"")
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b"", "the server keeps a pipe of its starter open"
    os.close(reader)

    pid = pid_of(local_server)
    assert os.getsid(pid) not in (starter.pid, os.getsid(0))
    with pytest.raises(ProcessLookupError):
        os.killpg(starter.pid, signal.SIGHUP)
    if Path("/proc/self/cwd").exists():
        assert Path(f"/proc/{pid}/cwd").resolve() == local_server.directory
    with client(local_server) as connection:
        assert connection.ping()


def test_no_second_server_beside_a_suspended_one(local_server: LocalServer) -> None:
    local_server.ensure_running()
    pid = pid_of(local_server)
    os.kill(pid, signal.SIGSTOP)
    for verb in (local_server.ensure_running, local_server.stop):
        with pytest.raises(LocalServerError, match=rf"\(process {pid}\) .* within 0\.01 s"):
            verb(timeout_s=0.01)
    with pytest.raises(LocalServerError, match=r"did not answer within 0\.02 s; |0\.02 s$"):
        local_server.ensure_running(reply_timeout_s=0.02)
    # It waits for two seconds.
    status = local_server.status()
    assert (status.running, status.pid, status.server) == (True, pid, None)
    assert starts_of(local_server) == 1


# Stopping and crashing


def test_stop_waits_for_the_exit_and_keeps_the_data(
    local_server: LocalServer,
) -> None:
    local_server.ensure_running()
    pid = pid_of(local_server)
    with client(local_server) as connection:
        connection.set("key", "value")
    assert local_server.stop() is True
    assert not local_server.status().running
    until(lambda: has_exited(pid))
    local_server.ensure_running()
    assert pid_of(local_server) != pid
    with client(local_server) as connection:
        assert connection.get("key") == "value"


def test_a_killed_server_keeps_data_and_starts_again(
    local_server: LocalServer,
) -> None:
    local_server.ensure_running()
    pid = pid_of(local_server)
    stored_bytes = local_server.status().aof_bytes or 0
    with client(local_server) as connection:
        connection.set("key", "value")
    until(lambda: (local_server.status().aof_bytes or 0) > stored_bytes)
    kill(pid)
    assert (local_server.directory / "valkey.sock").exists()
    assert (local_server.directory / "server.pid").read_text() == f"{pid}\n"
    status = local_server.status()
    assert (status.running, status.pid) == (False, None)
    assert local_server.stop() is False
    local_server.ensure_running()
    with client(local_server) as connection:
        assert connection.get("key") == "value"


def test_a_stale_pid_file_harms_no_process(local_server: LocalServer) -> None:
    local_server.directory.mkdir(mode=0o700)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            (local_server.directory / "server.pid").write_text(f"{bystander.pid}\n")
            assert local_server.status().pid is None
            assert local_server.stop() is False
            local_server.kill()
            local_server.ensure_running()
            assert pid_of(local_server) != bystander.pid
            assert local_server.stop() is True
            assert bystander.poll() is None
        finally:
            bystander.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_throwaway_server_is_removed_however_it_ends(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with suppress(KeyboardInterrupt), throwaway(environ) as server:
        assert server.directory.parent == tmp_path
        assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
        server.ensure_running()
        pid = pid_of(server)
        os.kill(pid, number)
        raise KeyboardInterrupt
    until(lambda: has_exited(pid))
    assert not any(tmp_path.iterdir())
