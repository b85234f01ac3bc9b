"""The local server, on servers of the tests' own.

`RWQ_TEST_SERVER` names the server program, or several, parted as in PATH: each test then runs with
each. Without it, the program is the one that a user would get.
"""

import fcntl
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

import rwq_cli
from rwq_cli.core.errors import LocalServerError
from rwq_cli.local import LocalServer, LocalStatus, default_directory, throwaway
from rwq_cli.local import instance as instance_module
from rwq_cli.local import launch as launch_module
from rwq_cli.local import temporary as temporary_module
from rwq_cli.local.status import stored_pid

ROOT = Path(rwq_cli.__file__).parents[1]
NOBODY = 65534
PROGRAMS = os.environ.get("RWQ_TEST_SERVER", "").split(os.pathsep)

MakeServer = Callable[..., LocalServer]


@pytest.fixture(params=range(len(PROGRAMS)), ids=lambda number: f"server{number}")
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """An environment that names the server program and nothing of the person who runs the tests."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    if PROGRAMS[request.param]:
        environ["RWQ_LOCAL_SERVER"] = PROGRAMS[request.param]
    return environ


@pytest.fixture
def make_server(environ: dict[str, str]) -> Iterator[MakeServer]:
    made: list[LocalServer] = []

    def make(directory: Path, **more: str) -> LocalServer:
        made.append(LocalServer(directory, {**environ, **more}))
        return made[-1]

    yield make
    for server in made:
        end(server)


@pytest.fixture
def server(make_server: MakeServer, tmp_path: Path) -> LocalServer:
    return make_server(tmp_path / "data")


@pytest.fixture
def short_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="r") as name:
        yield Path(name)


@pytest.fixture
def throwaway_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    parent = tmp_path / "tmp"
    parent.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    return parent


def end(server: LocalServer) -> None:
    """Kill a server that a test started, also one that lost its socket or is suspended."""
    # The lock's holder wrote the pid file: nobody else starts servers in the tests' directories.
    with suppress(OSError):
        pid = stored_pid(server.directory) if server._lock.is_held() else None
        if pid is not None:
            kill(pid)
    with suppress(LocalServerError):
        server.stop()


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid))


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has waited for yet counts as ended."""
    seen = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return not seen.stdout.strip() or seen.stdout.startswith("Z")


def wait_until(is_so: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def pid_of(server: LocalServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def starts_of(server: LocalServer) -> int:
    return (server.directory / "server.log").read_text().count("Server initialized")


@contextmanager
def client(server: LocalServer) -> Iterator["redis.Redis"]:
    connection = redis.Redis(unix_socket_path=str(server.status().socket), decode_responses=True)
    try:
        yield connection
    finally:
        connection.close()


def script(file: Path, body: str) -> Path:
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


@contextmanager
def answering(server: LocalServer, answers: Sequence[bytes]) -> Iterator[None]:
    """Something that listens at the server's socket and gives each caller the next answer."""
    server.directory.mkdir(mode=0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(server.status().socket))
    listener.listen()

    def serve() -> None:
        for answer in answers:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(100)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


# Where the data are


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/rwq/local"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/rwq/local"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/rwq/local"),
        ({}, str(Path.home() / ".local/state/rwq/local")),
    ],
)
def test_the_default_directory(environ: dict[str, str], expected: str) -> None:
    assert default_directory(environ) == Path(expected)


def test_the_directory_and_what_is_in_it_are_closed_to_others(server: LocalServer) -> None:
    path = server.ensure_running()
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for file in server.directory.rglob("*"):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


def test_an_empty_directory_is_closed_to_others(server: LocalServer) -> None:
    server.directory.mkdir()
    server.directory.chmod(0o755)
    server.ensure_running()
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700


def test_our_own_directory_is_closed_again(server: LocalServer) -> None:
    server.ensure_running()
    server.directory.chmod(0o777)
    server.ensure_running()
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700


def test_an_open_directory_with_other_files_is_refused_and_left_alone(server: LocalServer) -> None:
    server.directory.mkdir()
    server.directory.chmod(0o755)
    (server.directory / "letter").touch()
    with pytest.raises(LocalServerError, match="is open to other users and holds other files"):
        server.ensure_running()
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o755
    assert os.listdir(server.directory) == ["letter"]


@pytest.mark.parametrize("verb", ["ensure_running", "stop", "status"])
def test_someone_elses_directory_is_refused(
    server: LocalServer, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.directory.mkdir()
    other_uid = os.geteuid() + 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: other_uid)
        with pytest.raises(LocalServerError, match="belongs to another user"):
            getattr(server, verb)()


@pytest.mark.parametrize("verb", ["ensure_running", "stop", "status"])
def test_a_file_in_the_directorys_place_is_an_error(server: LocalServer, verb: str) -> None:
    server.directory.touch()
    with pytest.raises(LocalServerError) as caught:
        getattr(server, verb)()
    assert caught.value.message == f"{server.directory} is not a directory"


def test_a_file_on_the_way_to_the_directory_is_an_error(
    make_server: MakeServer, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    server = make_server(tmp_path / "file" / "data")
    with pytest.raises(LocalServerError) as caught:
        server.ensure_running()
    assert caught.value.message == f"cannot make the directory {server.directory}: Not a directory"


def test_a_directory_that_cannot_be_made_is_an_error(
    make_server: MakeServer, tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    server = make_server(tmp_path / "closed" / "data")
    is_root = os.geteuid() == 0
    try:
        # Root may write everywhere.
        if is_root:
            os.seteuid(NOBODY)
        with pytest.raises(LocalServerError) as caught:
            server.ensure_running()
    finally:
        if is_root:
            os.seteuid(0)
    assert caught.value.message.startswith("cannot make the directory ")
    assert caught.value.message.endswith(": Permission denied")


# Starting


def test_it_answers(server: LocalServer) -> None:
    path = server.ensure_running()
    assert path == server.directory / "valkey.sock"
    with client(server) as connection:
        assert connection.ping()


def test_its_settings(server: LocalServer) -> None:
    server.ensure_running()
    expected = {
        "port": "0",
        "unixsocketperm": "700",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "dir": str(server.directory),
        "maxmemory-policy": "noeviction",
        "logfile": str(server.directory / "server.log"),
    }
    with client(server) as connection:
        assert {name: connection.config_get(name)[name] for name in expected} == expected
        assert connection.info("server")["config_file"] == ""


@pytest.mark.parametrize("name", ["two words", 'it\'s "quoted"', "Größe%s", "--port 7"])
def test_a_directory_with_a_strange_name(
    make_server: MakeServer, tmp_path: Path, name: str
) -> None:
    server = make_server(tmp_path / name)
    assert server.ensure_running() == tmp_path / name / "valkey.sock"


def test_a_second_call_does_not_start_a_second_one(
    server: LocalServer, make_server: MakeServer
) -> None:
    path = server.ensure_running()
    pid = pid_of(server)
    other = make_server(server.directory)
    assert other.ensure_running() == server.ensure_running() == path
    assert pid_of(other) == pid
    assert starts_of(server) == 1


def test_a_symlink_to_the_directory_leads_to_the_same_server(
    server: LocalServer, make_server: MakeServer, tmp_path: Path
) -> None:
    path = server.ensure_running()
    link = tmp_path / ("l" * 120)
    link.symlink_to(server.directory)
    other = make_server(link)
    assert other.ensure_running() == path
    assert pid_of(other) == pid_of(server)


def test_many_at_once_start_one(server: LocalServer, environ: dict[str, str]) -> None:
    many = 16
    # They are forks, to be ready at the same time; of a process of their own, for whatever they
    # raise must never run on into the test runner.
    starting = f"""
import multiprocessing, os, sys
from pathlib import Path
from rwq_cli.core.errors import LocalServerError
from rwq_cli.local import LocalServer

context = multiprocessing.get_context("fork")
gate = context.Barrier({many})

def ask():
    own = LocalServer(Path(sys.argv[1]), dict(os.environ))
    gate.wait()
    try:
        own.ensure_running()
        answer = own.status().pid
    except LocalServerError as error:
        answer = error.message
    os.write(1, b"%a\\n" % (answer,))

processes = [context.Process(target=ask) for _ in range({many})]
for process in processes:
    process.start()
for process in processes:
    process.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", starting, str(server.directory)],
        env=environ,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    assert done.stderr == b""
    assert done.stdout.splitlines() == [b"%d" % pid_of(server)] * many
    assert starts_of(server) == 1


def test_it_outlives_the_command_that_started_it(
    server: LocalServer, environ: dict[str, str], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    code = (
        "import sys; from pathlib import Path; from rwq_cli.local import LocalServer\n"
        "LocalServer(Path(sys.argv[1])).ensure_running()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(server.directory)],
        env={**environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        pass_fds=(writer,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(writer)
    # Would not return if the server kept the standard streams.
    output = starter.communicate(timeout=20)
    assert (starter.returncode, *output) == (0, b"", b"")
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b"", "the server keeps a pipe of its starter's open"
    os.close(reader)

    pid = pid_of(server)
    assert os.getsid(pid) not in (starter.pid, os.getsid(0))
    with pytest.raises(ProcessLookupError):
        os.killpg(starter.pid, signal.SIGHUP)
    if Path("/proc/self/cwd").exists():
        assert Path(f"/proc/{pid}/cwd").resolve() == server.directory
    with client(server) as connection:
        assert connection.ping()


def test_nothing_secret_is_passed_on(make_server: MakeServer, tmp_path: Path) -> None:
    program = script(tmp_path / "program", "env > env.txt; exit 1")
    server = make_server(
        tmp_path / "data", RWQ_LOCAL_SERVER=str(program), RWQ_PASSWORD="hunter2", TZ="UTC"
    )
    with pytest.raises(LocalServerError):
        server.ensure_running()
    passed_on = (server.directory / "env.txt").read_text()
    assert "TZ=UTC" in passed_on
    assert "hunter2" not in passed_on


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_start_leaves_nothing_that_breaks_the_next(
    server: LocalServer, environ: dict[str, str], ending: signal.Signals
) -> None:
    chance = random.Random(20)
    # The signal may come at any instant of the starter's life, and what it raises there must never
    # run on into the test runner: so the starter is a process of its own, and no fork of this one.
    starting = (
        "import os, sys; from pathlib import Path; from rwq_cli.local import LocalServer; "
        "server = LocalServer(Path(sys.argv[1]), dict(os.environ)); "
        "print(flush=True); server.ensure_running()"
    )
    for turn in range(1, 21):
        starter = subprocess.Popen(
            [sys.executable, "-c", starting, str(server.directory)],
            env=environ,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"\n"
        time.sleep(chance.uniform(0, 0.008))
        # As a terminal does it: the signal goes to all of the group. Whoever comes second is late.
        with suppress(ProcessLookupError):
            os.killpg(starter.pid, ending)
        starter.communicate()
        server.ensure_running()
        with client(server) as connection:
            assert connection.incr("turns") == turn
        assert starts_of(server) == turn
        assert server.stop()


def test_a_server_that_is_loading_is_waited_for(server: LocalServer) -> None:
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    path = server.status().socket
    with answering(server, [loading, loading, b"+PONG\r\n"]):
        assert server.ensure_running() == path
    assert not (server.directory / "server.log").exists()


def test_a_server_that_loads_too_long_is_an_error(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "_LISTEN_TIMEOUT_S", 0.05)
    with (
        answering(server, [b"-LOADING\r\n"] * 1000),
        pytest.raises(LocalServerError, match=r"does not answer after 0\.2 s"),
    ):
        server.ensure_running(timeout_s=0.2)
    assert not (server.directory / "server.log").exists()


def test_a_refused_ping_is_an_answer(server: LocalServer) -> None:
    path = server.status().socket
    with answering(server, [b"-MISCONF Errors writing to the AOF file\r\n"]):
        assert server.ensure_running() == path


def test_a_suspended_server_gets_no_rival(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "_INFO_TIMEOUT_S", 0.1)
    server.ensure_running()
    pid = pid_of(server)
    os.kill(pid, signal.SIGSTOP)
    for verb in (server.ensure_running, server.stop):
        with pytest.raises(LocalServerError, match=rf"\(process {pid}\) .* after 0\.2 s"):
            verb(timeout_s=0.2)
    status = server.status()
    assert (status.running, status.pid, status.server) == (True, pid, None)
    assert starts_of(server) == 1


def test_a_server_that_lost_its_socket_gets_no_rival(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "_LISTEN_TIMEOUT_S", 0.2)
    server.ensure_running().unlink()
    status = server.status()
    assert status.running
    with pytest.raises(LocalServerError, match=rf"\(process {status.pid}\) .* nobody listens"):
        server.ensure_running()
    with pytest.raises(LocalServerError, match="is not gone"):
        server.stop(timeout_s=0.2)
    assert starts_of(server) == 1


# A start that fails


def test_damaged_data_are_an_error_at_once(server: LocalServer) -> None:
    server.directory.mkdir(mode=0o700)
    (server.directory / "appendonly.aof").write_text("this is not an append-only file\n")
    began_s = time.monotonic()
    with pytest.raises(LocalServerError) as caught:
        server.ensure_running()
    assert time.monotonic() - began_s < 5
    assert caught.value.message.startswith("the server ended while it started: ")
    assert "Bad file format reading the append only file" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint == f"its log is {server.directory / 'server.log'}"
    assert not server.status().running


@pytest.mark.parametrize(
    ("free_blocks", "reason"), [(0, "no space left on the device"), (9, "its log says nothing")]
)
def test_a_server_that_ends_without_a_word(
    make_server: MakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_blocks: int,
    reason: str,
) -> None:
    program = script(tmp_path / "program", "exit 0")
    server = make_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(program))
    server.directory.mkdir(mode=0o700)
    (server.directory / "server.log").write_text("1:M 01 Jan 2020 00:00:00.000 * an old line\n")
    facts = os.statvfs_result((512, 512, 9, 9, free_blocks, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: facts)
    with pytest.raises(LocalServerError) as caught:
        server.ensure_running()
    assert caught.value.message == f"the server ended while it started: {reason}"


def test_a_program_that_refuses_its_settings(make_server: MakeServer, tmp_path: Path) -> None:
    program = script(tmp_path / "program", "echo first; echo 'unknown option' >&2; exit 3")
    server = make_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(program))
    with pytest.raises(LocalServerError) as caught:
        server.ensure_running()
    assert caught.value.message == f"the server {program} did not start: first; unknown option"


def test_a_program_that_cannot_be_run(make_server: MakeServer, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    server = make_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(program))
    with pytest.raises(LocalServerError) as caught:
        server.ensure_running()
    assert caught.value.message == f"cannot run the server {program}: Exec format error"


def test_a_program_that_is_no_server(
    make_server: MakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "_LAUNCH_TIMEOUT_S", 0.2)
    program = script(tmp_path / "program", "echo $$ > pid.txt; exec sleep 60")
    server = make_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(program))
    with pytest.raises(LocalServerError, match="did not go to the background"):
        server.ensure_running()
    pid = int((server.directory / "pid.txt").read_text())
    wait_until(lambda: is_gone(pid))
    assert not server.status().running


def test_after_a_failed_start_the_next_one_works(
    server: LocalServer, make_server: MakeServer, tmp_path: Path
) -> None:
    program = script(tmp_path / "program", "exit 1")
    with pytest.raises(LocalServerError):
        make_server(server.directory, RWQ_LOCAL_SERVER=str(program)).ensure_running()
    server.ensure_running()


def test_data_of_a_newer_server_are_not_passed_over(server: LocalServer) -> None:
    server.ensure_running()
    name = server.status().server
    server.stop()
    assert name is not None
    if int(name.split()[1].split(".")[0]) >= 7:
        pytest.skip("this server knows the directory")
    (server.directory / "appendonlydir").mkdir()
    with pytest.raises(LocalServerError, match="did not start"):
        server.ensure_running()


# Stopping, and ending otherwise


def test_stop_without_a_server(server: LocalServer) -> None:
    assert server.stop() is False
    assert not server.directory.exists()
    server.ensure_running()
    assert server.stop() is True
    assert server.stop() is False


def test_stop_waits_until_it_is_gone_and_keeps_the_data(server: LocalServer) -> None:
    server.ensure_running()
    pid = pid_of(server)
    with client(server) as connection:
        connection.set("key", "value")
    assert server.stop() is True
    assert not server._lock.is_held()
    wait_until(lambda: is_gone(pid), timeout_s=0.5)
    server.ensure_running()
    assert pid_of(server) != pid
    with client(server) as connection:
        assert connection.get("key") == "value"


def test_a_refusal_to_stop_is_told(server: LocalServer) -> None:
    answer = b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    with answering(server, [answer]), pytest.raises(LocalServerError) as caught:
        server.stop()
    assert caught.value.message == (
        f"the local server in {server.directory} did not shut down: "
        "ERR Errors trying to SHUTDOWN. Check logs."
    )


def test_a_killed_server_loses_at_most_a_second_and_leaves_nothing_in_the_way(
    server: LocalServer,
) -> None:
    path = server.ensure_running()
    pid = pid_of(server)
    stored_bytes = server.status().aof_bytes or 0
    with client(server) as connection:
        connection.set("key", "value")
    wait_until(lambda: (server.status().aof_bytes or 0) > stored_bytes, timeout_s=2)
    kill(pid)
    assert path.exists()
    assert stored_pid(server.directory) == pid
    status = server.status()
    assert (status.running, status.pid) == (False, None)
    assert server.stop() is False
    server.ensure_running()
    with client(server) as connection:
        assert connection.get("key") == "value"


def test_a_stale_pid_file_harms_nobody(server: LocalServer) -> None:
    server.directory.mkdir(mode=0o700)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            (server.directory / "server.pid").write_text(f"{bystander.pid}\n")
            assert server.status().pid is None
            assert server.stop() is False
            server.ensure_running()
            assert pid_of(server) == stored_pid(server.directory) != bystander.pid
            assert server.stop() is True
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_stale_pid_file_is_removed_before_the_start(
    make_server: MakeServer, tmp_path: Path
) -> None:
    program = script(tmp_path / "program", "exit 1")
    server = make_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(program))
    server.directory.mkdir(mode=0o700)
    (server.directory / "server.pid").write_text("1\n")
    with pytest.raises(LocalServerError):
        server.ensure_running()
    assert stored_pid(server.directory) is None


# Looking


def test_two_who_look_at_once_do_not_see_each_other(server: LocalServer) -> None:
    server.ensure_running()
    server.stop()
    with open(server.directory / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert not server.status().running
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert server.status().running


def test_status_without_a_server(server: LocalServer) -> None:
    assert server.status() == LocalStatus(
        running=False,
        pid=None,
        socket=server.directory / "valkey.sock",
        directory=server.directory,
        server=None,
        used_memory_bytes=None,
        aof_bytes=None,
        uptime_s=None,
    )
    assert not server.directory.exists()


def test_status_of_a_server(server: LocalServer) -> None:
    path = server.ensure_running()
    before = server.status()
    with client(server) as connection:
        connection.set("key", "x" * 3_000_000)
        info = connection.info()
    wait_until(lambda: (server.status().aof_bytes or 0) > 3_000_000)
    after = server.status()
    name = "valkey" if "valkey_version" in info else "redis"
    assert after.server == f"{name} {info[f'{name}_version']}"
    assert (after.running, after.pid) == (True, info["process_id"])
    assert (after.socket, after.directory) == (path, server.directory)
    assert before.used_memory_bytes is not None
    assert after.used_memory_bytes is not None
    assert after.used_memory_bytes - before.used_memory_bytes >= 3_000_000
    assert after.uptime_s is not None
    assert 0 <= after.uptime_s < 60
    server.stop()
    assert server.status().aof_bytes == after.aof_bytes


# A path that is too long for a socket


@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "TMPDIR"])
def test_a_long_path_gets_a_short_socket_that_everybody_finds(
    make_server: MakeServer, tmp_path: Path, short_directory: Path, variable: str
) -> None:
    directory = tmp_path / ("d" * 120)
    server = make_server(directory, **{variable: str(short_directory)})
    assert not any(short_directory.iterdir())
    path = server.ensure_running()
    assert path.parent.parent == short_directory
    assert path.parent.name.startswith(f"rwq-{os.geteuid()}-")
    assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
    with client(server) as connection:
        assert connection.set("key", "value")

    elsewhere = make_server(directory, XDG_RUNTIME_DIR=str(tmp_path), TMPDIR="relative")
    assert elsewhere.ensure_running() == path
    assert elsewhere.stop() is True
    assert not any(short_directory.iterdir())
    assert sorted(os.listdir(directory))[-2:] == ["lock", "server.log"]


def test_a_long_path_after_a_kill_and_the_loss_of_the_short_directory(
    make_server: MakeServer, tmp_path: Path, short_directory: Path
) -> None:
    server = make_server(tmp_path / ("d" * 120), XDG_RUNTIME_DIR=str(short_directory))
    path = server.ensure_running()
    kill(pid_of(server))
    assert server.ensure_running() == path
    kill(pid_of(server))
    path.unlink()
    path.parent.rmdir()
    assert server.ensure_running() == path
    assert server.stop() is True


@pytest.mark.parametrize("verb", ["ensure_running", "status"])
@pytest.mark.parametrize("trap", ["symlink", "file", "other owner"])
def test_what_others_put_in_the_short_place_is_refused(
    make_server: MakeServer, tmp_path: Path, short_directory: Path, trap: str, verb: str
) -> None:
    server = make_server(tmp_path / ("d" * 120), XDG_RUNTIME_DIR=str(short_directory))
    place = server.status().socket.parent
    if trap == "symlink":
        place.symlink_to(tmp_path)
    elif trap == "file":
        place.touch()
    elif os.geteuid() == 0:
        place.mkdir(mode=0o700)
        os.chown(place, NOBODY, -1)
    else:
        pytest.skip("only root can give a directory away")
    message = "belongs to another" if trap == "other owner" else "is not a real directory"
    with pytest.raises(LocalServerError, match=message):
        getattr(server, verb)()


# For a moment


class Nothing(BaseException):
    """Stands for a block that ends as it should."""


@pytest.mark.parametrize("ending", [Nothing, ValueError, KeyboardInterrupt, SystemExit])
def test_a_throwaway_server_goes_however_the_block_ends(
    environ: dict[str, str], throwaway_parent: Path, ending: type[BaseException]
) -> None:
    pid = 0
    with suppress(ending), throwaway(environ) as server:
        assert server.directory.parent == throwaway_parent
        assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
        server.ensure_running()
        pid = pid_of(server)
        if ending is not Nothing:
            raise ending
    assert pid
    wait_until(lambda: is_gone(pid))
    assert not any(throwaway_parent.iterdir())


def test_a_throwaway_server_that_was_never_started(throwaway_parent: Path) -> None:
    with throwaway({}):
        assert any(throwaway_parent.iterdir())
    assert not any(throwaway_parent.iterdir())


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_a_throwaway_server_that_died_or_hangs(
    environ: dict[str, str],
    throwaway_parent: Path,
    monkeypatch: pytest.MonkeyPatch,
    blow: signal.Signals,
) -> None:
    monkeypatch.setattr(temporary_module, "_STOP_TIMEOUT_S", 0.3)
    monkeypatch.setattr(instance_module, "_INFO_TIMEOUT_S", 0.1)
    with throwaway(environ) as server:
        server.ensure_running()
        pid = pid_of(server)
        os.kill(pid, blow)
    wait_until(lambda: is_gone(pid))
    assert not any(throwaway_parent.iterdir())


def test_an_interrupt_of_the_clean_up_still_removes_everything(
    environ: dict[str, str], throwaway_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_stop = LocalServer.stop
    pids: list[int] = []

    def interrupted_stop(server: LocalServer, timeout_s: float = 1) -> bool:
        if pids:
            return real_stop(server, timeout_s)
        pids.append(pid_of(server))
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalServer, "stop", interrupted_stop)
    with pytest.raises(KeyboardInterrupt), throwaway(environ) as server:
        server.ensure_running()
    wait_until(lambda: is_gone(pids[0]))
    assert not any(throwaway_parent.iterdir())


# The package


def test_only_the_standard_library_is_imported() -> None:
    # In place of `rwq_cli.core`, a package that imports nothing by itself.
    code = (
        "import sys, types; sys.path.append(sys.argv[1])\n"
        "core = types.ModuleType('rwq_cli.core'); core.__path__ = [sys.argv[2]]\n"
        "sys.modules['rwq_cli.core'] = core\n"
        "import rwq_cli.local\n"
        "foreign = {name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names\n"
        "print(*sorted(foreign - {'__main__'}))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('rwq_cli.core.')))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT), str(ROOT / "rwq_cli" / "core")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "rwq_cli\nrwq_cli.core.errors\n"
