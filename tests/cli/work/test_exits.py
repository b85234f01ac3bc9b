"""What the exit code of a command does to its item, and the exit code of the worker."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis

import rwq_cli
from tests.conftest import Foreign, StartServer, contents
from tests.driver import COMMAND, Rwq, until
from tests.processes import TIMEOUT_S


def script(text: str) -> tuple[str, ...]:
    """The words of a command that runs this shell script."""
    return ("--", "/bin/sh", "-c", text)


LAST = ("--retries", "0")
AGAIN = {"queue": [b"1", b"2"]}
COUNTED = {**AGAIN, "returns": {b"1": b"1"}}
FAILED = "echo first >&2; echo second >&2; exit 7"


@pytest.mark.parametrize(
    ("words", "text", "code", "told", "left"),
    [
        ((), "true", 0, ["completed 1"], {"queue": [b"2"]}),
        ((), "exit 75", 0, ["released 1"], AGAIN),
        (
            (),
            "echo bad address >&2; exit 100",
            3,
            ["rwq: 1: exit 100: bad address; buried after attempt 1", "buried 1"],
            {"queue": [b"2"], "lease:1": b"rwq-buried:exit 100: bad address"},
        ),
        (
            LAST,
            FAILED,
            3,
            ["rwq: 1: exit 7: second; buried after attempt 1", "buried 1"],
            {"queue": [b"2"], "lease:1": b"rwq-buried:exit 7: first\nsecond"},
        ),
        *(
            (
                (*LAST, "--on-fail", how),
                "exit 7",
                3,
                ["rwq: 1: exit 7; released after attempt 1", "released 1"],
                COUNTED,
            )
            for how in ("release", "stop")
        ),
        (
            (*LAST, "--on-fail", "reject"),
            "exit 7",
            3,
            ["rwq: 1: exit 7; rejected after attempt 1", "rejected 1"],
            {"queue": [b"2"], "result:1": b"rejected"},
        ),
        *(
            (
                LAST,
                f"echo lib: not found >&2; exit {code}",
                3,
                [f"rwq: 1: exit {code}: lib: not found; buried after attempt 1", "buried 1"],
                {"queue": [b"2"], "lease:1": b"rwq-buried:exit %d: lib: not found" % code},
            )
            for code in (126, 127)
        ),
    ],
)
def test_an_exit_code_decides(
    rwq: Rwq,
    raw: redis.Redis,
    foreign: Foreign,
    words: tuple[str, ...],
    text: str,
    code: int,
    told: list[str],
    left: dict[str, Any],
) -> None:
    foreign.waiting(b"1", b"2")
    result = rwq("work", "--max", "1", *words, *script(text))
    assert (result.code, result.text) == (code, "")
    assert result.notes.splitlines()[-len(told) :] == told
    found: dict[str, Any] = {
        "queue": raw.lrange("jobs:queue", 0, -1),
        "returns": raw.hgetall("jobs:returns"),
        "lease:1": raw.get("jobs:lease:1"),
        "result:1": raw.hget("jobs:result:1", "status"),
        "processing": raw.lrange("jobs:processing", 0, -1),
    }
    if "lease:1" not in left:
        # What was put back has a settling lease.
        del found["lease:1"]
    assert {name: value for name, value in found.items() if value} == left


def test_another_code_is_a_failure_to_be_retried(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1")
    result = rwq("work", "--max", "1", *script("echo first >&2; echo no such host >&2; exit 7"))
    first, second, told, summary = result.notes.splitlines()
    assert (result.code, first, second, summary) == (
        0,
        "first",
        "no such host",
        "retry 1",
    )
    assert told.startswith("rwq: 1: exit 7: no such host; attempt 2 in ")
    assert raw.hgetall("jobs:returns") == {b"1": b"1"}
    assert raw.zrange("jobs:delayed", 0, -1) == [b"1"]
    due_s = raw.zscore("jobs:delayed", "1") or 0.0
    now_s, _ = raw.time()
    # 10 s, give or take 20 %.
    assert 7 <= due_s / 1000 - now_s <= 13


def test_a_retry_comes_behind_what_waits(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    assert "; attempt 2 not before " in rwq("work", "--max", "1", *script("exit 7")).notes


def test_on_fail_release_leaves_a_slot_empty_briefly(rwq: Rwq, foreign: Foreign) -> None:
    """An item that always fails must not be run again and again without a pause."""
    foreign.waiting(b"1")
    log = rwq.home / "log"
    words = ("--retries", "0", "--max", "2", "--on-fail", "release")
    assert rwq("work", *words, *script(f"date +%s.%N >>{log}; exit 1")).code == 3
    first, second = map(float, log.read_text().split())
    assert second - first >= 1


class TestACommandThatCannotRun:
    """Nothing is leased: it is looked for before."""

    @pytest.mark.parametrize(
        ("word", "reason"),
        {
            "no-such-program": "command not found",
            "/nowhere/work": "no such file",
            "/tmp": "it is a directory",
            "/etc/passwd": "permission denied",
        }.items(),
    )
    def test_is_an_error_at_the_start(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, word: str, reason: str
    ) -> None:
        foreign.waiting(b"1")
        before = contents(raw)
        result = rwq("work", "--", word)
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith(f"rwq: error: cannot run {word}: {reason}; ")
        assert contents(raw) == before

    def test_a_script_without_an_interpreter_is_put_back(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        program = rwq.home / "work"
        program.write_text("echo hello\n")
        program.chmod(0o755)
        result = rwq("work", "--", str(program))
        assert (result.code, result.notes) == (
            2,
            f"rwq: error: cannot run {program}: exec format error; "
            "does its first line name an interpreter, such as #!/bin/sh?\n",
        )
        assert raw.lrange("jobs:queue", 0, -1) == [b"1"]

    def test_no_command_is_an_error(self, rwq: Rwq) -> None:
        assert rwq("work").as_tuple() == (
            2,
            "",
            "rwq: error: no command given; it follows --, as in: rwq work -q jobs -- ./work\n",
        )


def test_an_item_that_killed_every_worker_is_buried(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    raw.hset("jobs:returns", "1", 4)
    result = rwq("work", "--drain", *script('echo "$RWQ_ID"'))
    assert (result.code, result.text) == (3, "2\n")
    assert result.notes.splitlines()[0] == (
        "rwq: 1: no attempts left: 4 attempts failed, or their worker died; buried after attempt 4"
    )
    assert raw.zrange("jobs:buried", 0, -1) == [b"1"]


def test_max_failures_ends_with_3(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)))
    result = rwq("work", "--max-failures", "2", *script("exit 1"))
    assert (result.code, result.notes.splitlines()[2:]) == (3, ["retry 2"])
    assert raw.llen("jobs:queue") == 8


def program(rwq: Rwq, text: str) -> str:
    path = rwq.home / "program"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("line", ["#!/no/such/shell", "#!/usr/bin/env -S no-such-shell -e"])
def test_a_bad_program_is_found_before_leasing(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, line: str
) -> None:
    foreign.waiting(b"1")
    before = contents(raw)
    result = rwq("work", "--", program(rwq, f"{line}\n"))
    assert (result.code, contents(raw)) == (2, before)
    assert "its first line names" in result.notes


def test_a_program_that_is_gone_ends_the_worker(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    result = rwq("work", "--", program(rwq, '#!/bin/sh\nrm "$0"\nexit 127\n'))
    assert (result.code, raw.lrange("jobs:queue", 0, -1)) == (2, [b"2", b"1"])
    assert "no such file" in result.notes


def test_a_program_still_being_written_is_waited_for(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    path = rwq.home / "true"
    shutil.copy(shutil.which("true") or "", path)
    with path.open("ab"):
        worker = rwq.start("work", "--drain", "--", str(path))
        time.sleep(1)
        assert worker.poll() is None
    _, told = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, told.splitlines()[-1]) == (0, b"completed 1")


@pytest.mark.parametrize(
    ("bad", "words", "summary", "runs"),
    [
        # One bad item of ten: 1-5 fail, of these 3-5, of these 5.
        ("5", (), "completed 9, retry 1", 9),
        # Two, one in each half: left to the next attempt; but the last one finds them.
        ("2|7", (), "retry 10", 3),
        ("2|7", LAST, "completed 8, buried 2", 11),
        (".*", LAST, "buried 10", 19),
    ],
)
def test_a_failing_batch_is_halved_down_to_its_cause(
    rwq: Rwq, bad: str, words: tuple[str, ...], summary: str, runs: int
) -> None:
    rwq("add", "--id-from", "line", stdin=b"".join(b"%d\n" % number for number in range(1, 11)))
    text = f'echo >>runs; ! grep -qE \'"data": "({bad})"\''
    result = rwq.process("work", "--max", "10", "--batch", "10", *words, *script(text))
    assert result.notes.splitlines()[-1] == summary
    assert len((rwq.home / "runs").read_bytes()) == runs


def test_reading_a_line_gives_one_or_a_hint(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"3", b"4")
    words = ("work", "--max", "4", *script("read -r line"))
    result = rwq(*words, "--retries", "9")
    hint = [line for line in result.notes.splitlines() if "--input line" in line]
    assert (len(hint), "3 commands have ended with 1" in hint[0]) == (1, True)
    foreign.waiting(b"5", b"6", b"7")
    result = rwq("work", "--max", "3", "--input", "line", *words[3:])
    assert result.notes == "completed 3\n"


def test_exit_codes_are_known_under_ignored_sigchld(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", ignoring, *COMMAND[1:]]
    worker = rwq.start("work", "--max", "1", *LAST, *script("exit 7"), command=command)
    _, told = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, told.splitlines()[0][:15]) == (3, b"rwq: 1: exit 7;")


def test_a_permission_denied_briefly_loses_no_item(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server()
    with server.client() as raw:
        Foreign(raw).waiting(b"1")
        raw.execute_command("ACL", "SETUSER", "worker", "on", ">x", "~*", "&*", "+@all")
        variables = {"RWQ_URL": server.url.replace("unix://", "unix://worker:x@")}
        text = "echo; read x <go; echo ran"
        os.mkfifo(rwq.home / "go")
        worker = rwq.start("work", "--for", "20s", "--drain", *script(text), variables=variables)
        assert worker.stdout is not None
        worker.stdout.readline()
        raw.execute_command("ACL", "SETUSER", "worker", "resetkeys", "~other*")
        (rwq.home / "go").write_text("\n")
        assert worker.stdout.readline() == b"ran\n"
        time.sleep(1)
        raw.execute_command("ACL", "SETUSER", "worker", "~*")
        out, told = worker.communicate(timeout=TIMEOUT_S)
        assert (worker.returncode, out, told.splitlines()[-1]) == (0, b"", b"completed 1")


def test_a_job_log_that_was_rotated_is_opened_again(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    log = rwq.home / "log"
    rwq.process("work", "--max", "2", "--joblog", str(log), *script("[ -e log.1 ] || mv log log.1"))
    assert [len(path.read_bytes().splitlines()) for path in (log, rwq.home / "log.1")] == [2, 0]


def test_a_rate_spreads_what_is_taken(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(6)))
    words = ("--rate", "5/s", "-j", "4", *script("date +%s%N"))
    result = rwq.process("work", "--drain", *words)
    times = sorted(int(line) / 1e9 for line in result.text.splitlines())
    assert result.code == 0
    # However loaded the machine is: the last of six begins a second after the first.
    assert times[-1] - times[0] > 0.9


@pytest.mark.ci
def test_a_killed_embedded_server_is_started_again(rwq: Rwq) -> None:
    variables = {"RWQ_URL": f"local:{rwq.home}/data"}
    try:
        rwq.process("add", "x", variables=variables)
        os.mkfifo(rwq.home / "go")
        text = "echo; read x <go; echo ran"
        worker = rwq.start("work", "--drain", *script(text), variables=variables)
        assert worker.stdout is not None
        worker.stdout.readline()
        pid = int((rwq.home / "data" / "server.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        (rwq.home / "go").write_text("\n")
        _, told = worker.communicate(timeout=TIMEOUT_S)
        assert (worker.returncode, told.splitlines()[-1]) == (0, b"completed 1")
    finally:
        rwq.process("local", "stop", variables=variables)


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_worker_survives_an_upgrade_in_place(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, tmp_path: Path, is_moved: bool
) -> None:
    package = tmp_path / "packages" / "rwq_cli"
    shutil.copytree(Path(rwq_cli.__file__).parent, package)
    foreign.waiting(*(b"%d" % number for number in range(1, 5)))
    words = ("work", "--max", "4", "--backoff", "5m", "--result")
    worker = rwq.start(
        *(*words, *script("until [ -e go ]; do sleep 0.1; done; exit $((RWQ_ID % 3))")),
        variables={"PYTHONPATH": str(package.parent)},
    )
    until(lambda: raw.exists("jobs:processing"))
    if is_moved:
        package.rename(tmp_path / "old")
    else:
        for path in package.rglob("*.*"):
            path.write_text("this is an error(")
    (rwq.home / "go").touch()
    _, told = worker.communicate(timeout=TIMEOUT_S)
    assert (worker.returncode, told.splitlines()[-1]) == (0, b"completed 1, retry 3")
