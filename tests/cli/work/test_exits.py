"""What the exit code of a command does to its item, and the exit code of the worker."""

from typing import Any

import pytest
import redis

from tests.conftest import Foreign, contents
from tests.driver import Rwq


def script(text: str) -> tuple[str, ...]:
    """The words of a command that runs this shell script."""
    return ("--", "/bin/sh", "-c", text)


LAST = ("--retries", "0")
AGAIN = {"queue": [b"1", b"2"]}
COUNTED = {**AGAIN, "returns": {b"1": b"1"}}
FAILED = "echo first >&2; echo second >&2; exit 7"
CANNOT = "rwq: error: the command cannot be run: exit"


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
                2,
                ["released 1", f"{CANNOT} {code}; lib: not found"],
                {"queue": [b"2", b"1"]},
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


def test_another_code_is_a_failure_that_is_retried_later(
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


def test_on_fail_release_leaves_a_slot_empty_for_a_moment(rwq: Rwq, foreign: Foreign) -> None:
    """An item that always fails must not be run again and again without a pause."""
    foreign.waiting(b"1")
    log = rwq.home / "log"
    words = ("--retries", "0", "--max", "2", "--on-fail", "release")
    assert rwq("work", *words, *script(f"date +%s.%N >>{log}; exit 1")).code == 3
    first, second = map(float, log.read_text().split())
    assert second - first >= 1


class TestACommandThatCannotRun:
    """Nothing is leased: it is looked for before."""

    def test_is_an_error_at_the_start(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        before = contents(raw)
        for word, reason in {
            "no-such-program": "command not found",
            "/nowhere/work": "no such file",
            "/tmp": "it is a directory",
            "/etc/passwd": "permission denied",
        }.items():
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


def test_an_item_that_killed_every_worker_is_buried_without_a_try(
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
