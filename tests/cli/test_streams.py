"""Streams that end, are closed or full, and Ctrl-C: quiet where it is right, and nothing lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import COMMAND, TIMEOUT_S, Result, Rwq, next_line, until

SUMMARY = "added 3\n"


class TestEmptyStdin:
    @pytest.mark.parametrize(
        ("line", "code", "notes"),
        [
            ("add", 0, "nothing added\n"),
            ("add --format jsonl", 0, "nothing added\n"),
            ("complete -", 0, "nothing completed\n"),
            ("touch -", 0, "nothing touched\n"),
            ("release - --force", 0, None),
            ("show -", 0, ""),
        ],
    )
    def test_empty_input_is_not_an_error(
        self, rwq: Rwq, raw: redis.Redis, line: str, code: int, notes: str | None
    ) -> None:
        result = rwq(*line.split())
        assert (result.code, result.text) == (code, "")
        assert notes is None or result.notes == notes
        assert raw.keys() == []

    def test_empty_lines_are_skipped(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        assert rwq("complete", "-", stdin=b"\na\n\n\nb").as_tuple() == (
            0,
            "",
            "completed 2\n",
        )


class TestClosedStdout:
    """`rwq ls | head`: quiet, and what changes things goes on to its end."""

    @pytest.mark.parametrize("output", ["table", "json", "ids"])
    @pytest.mark.needs("no-touch")
    def test_a_listing_ends_quietly(self, rwq: Rwq, output: str) -> None:
        rwq("add", "--id-from", "line", stdin=b"".join(b"%040d\n" % n for n in range(3000)))
        result = rwq.shell(f"rwq ls -n 0 -o {output} | head -n 1; exit ${{PIPESTATUS[0]}}")
        assert result.code == 0
        assert result.err == b""
        assert len(result.out) > 0

    @pytest.mark.parametrize("output", ["ids", "jsonl", "csv"])
    def test_an_add_adds_everything(self, rwq: Rwq, raw: redis.Redis, output: str) -> None:
        given = b"".join(b"%d\n" % number for number in range(5000))
        result = self.into_closed_pipe(rwq, "add", "-o", output, stdin=given)
        assert raw.llen("jobs:queue") == 5000
        assert result.as_tuple() == (0, "", "added 5,000\n")

    def test_an_add_from_a_slow_pipe_adds_everything(self, rwq: Rwq, raw: redis.Redis) -> None:
        process = rwq.start("add", "--id-from", "line", "-o", "ids")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1\n")
        process.stdin.flush()
        assert next_line(process.stdout) == b"1\n"
        process.stdout.close()
        for number in (b"2\n", b"3\n"):
            process.stdin.write(number)
            process.stdin.flush()
            time.sleep(0.05)
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0
        assert raw.lrange("jobs:queue", 0, -1) == [b"3", b"2", b"1"]
        assert process.stderr is not None
        assert process.stderr.read().decode() == SUMMARY

    @pytest.mark.parametrize(
        ("words", "code", "output"),
        [(("a", "gone"), 3, "jsonl"), (("gone",), 1, "json"), (("a",), 0, "ids")],
    )
    def test_a_verb_keeps_its_exit_code(
        self, rwq: Rwq, foreign: Foreign, words: tuple[str, ...], code: int, output: str
    ) -> None:
        foreign.waiting(b"a")
        result = self.into_closed_pipe(rwq, "complete", *words, "-o", output)
        assert (result.code, result.text) == (code, "")

    @staticmethod
    def into_closed_pipe(rwq: Rwq, *words: str, stdin: bytes = b"") -> Result:
        reads, writes = os.pipe()
        os.close(reads)
        try:
            process = rwq.start(*words, stdout=writes)
        finally:
            os.close(writes)
        _, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return Result(process.returncode, b"", err)


class TestFullDisk:
    @pytest.mark.parametrize("line", ["--help", "--version"])
    def test_a_write_error_is_reported(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        foreign.waiting(b"a")
        with open("/dev/full", "wb") as full:
            process = rwq.start(*line.split(), stdout=full)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 3
        assert err.startswith(b"rwq: error: cannot write the output: no space left on device")
        assert err.count(b"\n") == 1

    def test_an_add_says_how_many_items_are_in(self, rwq: Rwq, raw: redis.Redis) -> None:
        with open("/dev/full", "wb") as full:
            process = rwq.start("add", "-o", "ids", stdout=full)
        _, err = process.communicate(b"x\n" * 3000, timeout=TIMEOUT_S)
        assert process.returncode == 3
        assert b"cannot write the output: no space left on device" in err
        assert b"Traceback" not in err
        assert f"{raw.llen('jobs:queue'):,}".encode() in err

    def test_a_loop_of_leases_does_not_take_it_for_an_empty_queue(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b")
        with open("/dev/full", "wb") as full:
            process = rwq.start("lease", "-o", "data", stdout=full)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 3
        assert b"leased to this session; rwq release --mine puts them back" in err
        assert rwq("release", "--mine").code == 0
        assert rwq("stats", "--fields", "waiting,processing", "-o", "csv").text.endswith("2,0\n")

    def test_a_full_stderr_is_ignored(self, rwq: Rwq, raw: redis.Redis) -> None:
        with open("/dev/full", "wb") as full:
            process = rwq.start("add", "x", stderr=full)
        assert process.communicate(timeout=TIMEOUT_S)[0] == b""
        assert process.returncode == 0
        assert raw.llen("jobs:queue") == 1


class TestClosedStreams:
    """Started with a stream closed, as some supervisors do."""

    @pytest.mark.parametrize("closed", ["<&-", "2>&-", ">&-", "<&- >&- 2>&-"])
    @pytest.mark.parametrize(
        ("line", "notes", "waiting"),
        [("add x", "added 1\n", 2), ("complete a", "completed 1\n", 0)],
    )
    def test_the_command_does_its_work(
        self, rwq: Rwq, foreign: Foreign, closed: str, line: str, notes: str, waiting: int
    ) -> None:
        foreign.waiting(b"a")
        result = rwq.shell(f"rwq {line} {closed}")
        assert result.as_tuple() == (0, "", "" if "2>&-" in closed else notes)
        assert foreign.raw.llen("jobs:queue") == waiting


def interrupted_after(process: "subprocess.Popen[bytes]", size: int) -> tuple[bytes, bytes]:
    """stdout and stderr of a command that gets Ctrl-C once it has printed so much."""
    assert process.stdout is not None
    out = b""
    while len(out) < size:
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, "it ended before it was interrupted"
        out += piece
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    return out + rest, err


class TestInterrupt:
    def test_an_interrupted_wait_pops_nothing(self, rwq: Rwq, raw: redis.Redis) -> None:
        processes = [rwq.start("lease", "--wait", "-o", "ids") for _ in range(2)]
        until(lambda: raw.info("clients")["blocked_clients"] == 2)
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            waiting = b"waiting for an item in jobs\n"
            assert process.communicate(timeout=TIMEOUT_S) == (b"", waiting)
            assert process.returncode == 130
        rwq("add", "x", "--id", "a")
        assert raw.lrange("jobs:queue", 0, -1) == [b"a"]
        assert raw.exists("jobs:processing") == 0

    def test_an_interrupted_add_keeps_acknowledged_items(self, rwq: Rwq, raw: redis.Redis) -> None:
        process = rwq.start("add", "--id-from", "line", "-o", "ids")
        assert process.stdin is not None
        process.stdin.write(b"".join(b"%d\n" % number for number in range(2500)))
        process.stdin.flush()
        assert process.stdout is not None
        out = b""
        while out.count(b"\n") < 2500:
            piece = os.read(process.stdout.fileno(), 65536)
            assert piece, "it ended before it was interrupted"
            out += piece
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=TIMEOUT_S)
        assert rest == b""
        assert process.returncode == 130
        assert b"Traceback" not in err
        assert b"2,500" in err
        assert out.split() == raw.lrange("jobs:queue", 0, -1)[::-1]
        deep = rwq("stats", "--deep", "-o", "json").json
        assert [deep[name] for name in ("orphaned", "ghosts", "duplicated")] == [0, 0, 0]

    @pytest.mark.parametrize("more", [(), ("--unique",)])
    def test_an_add_interrupted_at_work_counts_every_item(
        self, rwq: Rwq, raw: redis.Redis, tmp_path: Path, more: tuple[str, ...]
    ) -> None:
        """What is in is what is told, to the last item."""
        lines = tmp_path / "lines"
        lines.write_bytes(b"".join(b"%d\n" % number for number in range(300_000)))
        process = rwq.start("add", "-f", str(lines), "-o", "ids", *more)
        out, err = interrupted_after(process, 1_000_000)
        printed = out.split()
        assert 20_000 < len(printed) < 300_000
        assert err == f"interrupted: added {len(printed):,}\n".encode()
        assert raw.llen("jobs:queue") == len(printed)

    def test_a_lease_interrupted_at_work_prints_every_item(
        self, rwq: Rwq, raw: redis.Redis
    ) -> None:
        ids = [b"%06d" % number for number in range(100_000)]
        raw.mset({b"jobs:item:" + item_id: b"" for item_id in ids})
        raw.lpush("jobs:queue", *ids)
        process = rwq.start("lease", "-n", "100000", "-o", "ids")
        out, _ = interrupted_after(process, 100_000)
        printed = out.split()
        assert 10_000 < len(printed) < 100_000
        assert raw.lrange("jobs:processing", 0, -1)[::-1] == printed

    @pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.06, 0.1])
    def test_an_interrupt_at_the_start_prints_no_traceback(self, rwq: Rwq, delay_s: float) -> None:
        # The start of Python itself takes as long as it takes, and an interrupt of that is its own.
        starting = "import os, rwq_cli.__main__ as rwq; os.write(1, b'!'); rwq.main()"
        process = rwq.start("lease", "--wait", command=(sys.executable, "-c", starting))
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 1) == b"!"
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert b"rwq_cli" not in err
        assert process.returncode in (130, -signal.SIGINT)

    def test_sigterm_ends_a_wait(self, rwq: Rwq, raw: redis.Redis) -> None:
        process = rwq.start("lease", "--wait", "-Q")
        until(lambda: raw.info("clients")["blocked_clients"] == 1)
        process.terminate()
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (out, err) == (b"", b"")
        assert process.returncode in (-signal.SIGTERM, 143)


class TestPipelines:
    """What a script with `set -euo pipefail` does."""

    def test_ids_are_piped_from_ls_to_complete(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(200)))
        script = "set -euo pipefail; rwq ls -n 100 -o ids | rwq complete -"
        assert rwq.shell(script).as_tuple() == (0, "", "completed 100\n")
        assert foreign.raw.llen("jobs:queue") == 100

    def test_strange_ids_are_piped_through_xargs(self, rwq: Rwq, foreign: Foreign) -> None:
        ids = [b"a b", b"c\nd", b"'e'", b'"f"', b"\\g", b"-h", b"\xff"]
        foreign.waiting(*ids)
        script = "set -euo pipefail; rwq lease -n 100 -o ids -0 | xargs -0 rwq complete --"
        result = rwq.shell(script)
        assert result.as_tuple() == (0, "", "completed 7\n")
        assert foreign.raw.keys() == []

    def test_data_is_separated_by_nul(self, rwq: Rwq) -> None:
        rwq("add", "--format", "nul", stdin=b"one line\0two\nlines\0")
        script = "rwq lease -n 9 -o data -0 | xargs -0 -n 1 printf '<%s>'"
        assert rwq.shell(script).text == "<one line><two\nlines>"

    def test_a_worker_in_a_shell_loop(self, rwq: Rwq, raw: redis.Redis) -> None:
        rwq("add", stdin=b"one\ntwo\nthree\n")
        script = """
            set -euo pipefail
            while id=$(rwq lease -o ids 2>/dev/null); do
                rwq show "$id" -o data
                echo
                rwq complete "$id" 2>/dev/null
            done
        """
        assert rwq.shell(script).as_tuple() == (0, "one\ntwo\nthree\n", "")
        assert raw.keys() == []

    @pytest.mark.parametrize(
        "line",
        [
            *(
                "complete -",
                "release --delay 1h -",
                "release --force --yes -",
                "bury --force --yes -",
            ),
            *("rm --yes -", "mv --to other --yes -", "show -"),
        ],
    )
    def test_ids_are_read_as_they_come(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        (foreign.leased if "--force" in line else foreign.waiting)(b"a", b"b")
        process = subprocess.Popen(
            [*COMMAND, *line.split(), "-o", "ids"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(rwq.variables),
            cwd=rwq.home,
        )
        rwq.started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        for item_id in (b"a\n", b"b\n"):
            process.stdin.write(item_id)
            process.stdin.flush()
            assert next_line(process.stdout) == item_id
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0


class TestUnreadableInput:
    """An input that cannot be read is no fault of the output."""

    @pytest.mark.parametrize(
        "line",
        [
            *(
                "add",
                "add --format raw",
                "rm --yes -",
                "complete -",
                "edit a --yes -f -",
                "import -",
            ),
            "import - --on-conflict replace --yes",
            "complete a --result -",
        ],
    )
    def test_stdin_is_open_for_writing_only(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, line: str
    ) -> None:
        foreign.waiting(b"a")
        result = rwq.shell(f"rwq {line} 0> sink")
        assert result.code == 2
        assert "rwq: error: cannot read stdin: bad file descriptor; " in result.notes
        assert raw.get("jobs:item:a") is not None

    def test_no_room_for_a_copy_of_stdin(self, rwq: Rwq, raw: redis.Redis) -> None:
        lines = b'{"rwq_export": 1, "queue": "jobs"}\n' + b'{"id": "a"}\n' * 100_000
        (rwq.home / "export").write_bytes(lines)
        result = rwq.shell("ulimit -f 100; cat export | rwq import - --on-conflict replace")
        assert (result.code, result.text) == (2, "")
        assert "cannot copy stdin to a temporary file: file too large; " in result.notes
        assert raw.keys() == []

    @pytest.mark.parametrize("command", ["undo", "import --on-conflict replace"])
    def test_a_name_that_is_too_long(self, rwq: Rwq, raw: redis.Redis, command: str) -> None:
        name = f"./{'a' * 300}"
        result = rwq(*command.split(), name)
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith("rwq: error: cannot read ")
        assert result.notes.endswith("a: file name too long; check the file's name\n")
        assert raw.keys() == []

    def test_a_state_directory_whose_name_is_too_long(self, rwq: Rwq) -> None:
        state = "/" + "a" * 300
        result = rwq("undo", "--list", variables={"XDG_STATE_HOME": state})
        assert (result.code, result.text) == (1, "")
        assert result.notes == f"rwq: error: cannot use {state}/rwq/undo: file name too long\n"
