"""What the exit code of a command does to its item, and the exit code of the worker."""

import pytest
import redis

from tests.conftest import Foreign, contents
from tests.driver import Rwq

WORK = ("work", "--drain", "--retries", "0")


def script(text: str) -> tuple[str, ...]:
    """The words of a command that runs this shell script."""
    return ("--", "/bin/sh", "-c", text)


class TestOneItem:
    def test_zero_completes_it(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        assert rwq(*WORK, "--", "true").as_tuple() == (0, "", "completed 1\n")
        assert contents(raw) == {}

    def test_another_code_is_a_failure_that_is_retried_later(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
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

    def test_after_the_last_try_it_is_buried_with_the_end_of_stderr(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        result = rwq(*WORK, *script("echo first >&2; echo second >&2; exit 7"))
        assert (result.code, result.notes.splitlines()[2:]) == (
            3,
            ["rwq: 1: exit 7: second; buried after attempt 1", "buried 1"],
        )
        assert raw.get("jobs:lease:1") == b"rwq-buried:exit 7: first\nsecond"

    @pytest.mark.parametrize("how", ["release", "stop"])
    def test_on_fail_puts_it_back(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, how: str
    ) -> None:
        foreign.waiting(b"1", b"2")
        result = rwq("work", "--retries", "0", "--max", "1", "--on-fail", how, *script("exit 7"))
        said = "rwq: 1: exit 7; released after attempt 1\nreleased 1\n"
        assert result.as_tuple() == (3, "", said)
        assert contents(raw) == {
            b"jobs:queue": [b"1", b"2"],
            b"jobs:item:1": b"data of 1",
            b"jobs:item:2": b"data of 2",
            b"jobs:returns": {b"1": b"1"},
        }

    def test_on_fail_release_leaves_a_slot_empty_for_a_moment(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        """An item that always fails must not be run again and again without a pause."""
        foreign.waiting(b"1")
        log = rwq.home / "log"
        words = ("--retries", "0", "--max", "2", "--on-fail", "release", "--joblog", str(log))
        assert rwq("work", *words, "--", "false").code == 3
        first, second = (float(line.split()[0]) for line in log.read_text().splitlines())
        assert second - first >= 1

    def test_on_fail_reject_completes_it_as_rejected(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1")
        result = rwq(*WORK, "--on-fail", "reject", *script("exit 7"))
        assert (result.code, result.notes) == (
            3,
            "rwq: 1: exit 7; rejected after attempt 1\nrejected 1\n",
        )
        assert raw.exists("jobs:item:1") == 0
        assert rwq("result", "1", "-o", "json").json["status"] == "rejected"

    def test_75_puts_it_back_and_does_not_count(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        result = rwq("work", "--max", "1", *script("exit 75"))
        assert result.as_tuple() == (0, "", "released 1\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"1", b"2"]
        assert raw.exists("jobs:returns", "jobs:processing") == 0

    def test_100_buries_it_at_once(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        result = rwq("work", "--drain", *script("echo bad address >&2; exit 100"))
        assert (result.code, result.notes.splitlines()[1:]) == (
            3,
            ["rwq: 1: exit 100: bad address; buried after attempt 1", "buried 1"],
        )
        assert raw.get("jobs:lease:1") == b"rwq-buried:exit 100: bad address"

    @pytest.mark.parametrize("code", [126, 127])
    def test_126_and_127_put_it_back_and_end_the_worker(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, code: int
    ) -> None:
        foreign.waiting(b"1", b"2")
        result = rwq(*WORK, *script(f"echo lib: not found >&2; exit {code}"))
        assert (result.code, result.notes.splitlines()[1:]) == (
            2,
            [
                "released 1",
                f"rwq: error: the command cannot be run: exit {code}; lib: not found",
            ],
        )
        assert raw.lrange("jobs:queue", 0, -1) == [b"2", b"1"]
        assert raw.exists("jobs:returns", "jobs:processing") == 0


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


class TestTheEnd:
    def test_max_ends_after_so_many_items(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(*(b"%d" % number for number in range(10)))
        assert rwq("work", "-j", "4", "--max", "3", "--", "true").as_tuple() == (
            0,
            "",
            "completed 3\n",
        )
        assert raw.lrange("jobs:queue", 0, -1) == [b"%d" % number for number in range(9, 2, -1)]
        assert raw.exists("jobs:processing") == 0

    def test_max_failures_ends_with_3(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(10)))
        result = rwq("work", "--max-failures", "2", *script("exit 1"))
        assert (result.code, result.notes.splitlines()[2:]) == (3, ["retry 2"])
        assert raw.llen("jobs:queue") == 8

    def test_idle_ends_after_so_long(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        assert rwq("work", "--idle", "50ms", "--", "true").as_tuple() == (0, "", "completed 1\n")


@pytest.mark.parametrize("how", [["--on-fail", "stop"], ["--max-failures", "1"]])
def test_after_many_short_commands_the_first_failure_is_the_last_command(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, how: list[str]
) -> None:
    """Nothing was leased ahead that would still be started."""
    foreign.waiting(*(b"%d" % number for number in range(60)))
    result = rwq(*WORK, *how, *script(f"echo $RWQ_ID >>{rwq.home}/ran; [ $RWQ_ID != 40 ]"))
    assert result.code == 3
    assert (rwq.home / "ran").read_text().split() == [str(number) for number in range(41)]
    assert raw.lrange("jobs:queue", 0, -1)[-19:] == [b"%d" % number for number in range(59, 40, -1)]
