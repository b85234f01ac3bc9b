"""What a command gets: arguments, data, environment; and what becomes of its output."""

import json
import re
import sys
from pathlib import Path

import pytest
import redis

from tests.cli.work.test_exits import script
from tests.conftest import Foreign, StartServer, contents
from tests.driver import Rwq

DRAIN = ("work", "--drain", "--retries", "0")


def put(raw: redis.Redis, item_id: bytes, data: bytes) -> None:
    """An item that waits, with these data."""
    raw.set(b"jobs:item:" + item_id, data)
    raw.lpush("jobs:queue", item_id)


class TestInput:
    def test_data_are_on_stdin(self, rwq: Rwq, raw: redis.Redis) -> None:
        put(raw, b"1", b"line\n\0\xff")
        result = rwq(*DRAIN, *script("cat"))
        assert result.as_bytes() == (0, b"line\n\0\xff", b"completed 1\n")

    def test_a_command_need_not_read_them(self, rwq: Rwq, raw: redis.Redis) -> None:
        put(raw, b"1", b"x" * 5_000_000)
        result = rwq(*DRAIN, *script("exec <&-; sleep 0.05"))
        assert result.as_tuple() == (0, "", "completed 1\n")

    def test_a_file_holds_them(self, rwq: Rwq, raw: redis.Redis, tmp_path: Path) -> None:
        put(raw, b"1", b"a\0b")
        result = rwq(
            *(*DRAIN, "--input", "file", "--", "sh", "-c", 'echo "$1"; wc -c <"$1"; wc -c', "sh"),
            "{file}",
            variables={"TMPDIR": str(tmp_path)},
        )
        path, *counts = result.text.splitlines()
        assert (result.code, counts) == (0, ["3", "0"])
        assert Path(path).parent == tmp_path
        assert list(tmp_path.glob("rwq-work-*")) == []

    def test_an_argument_holds_them(self, rwq: Rwq, raw: redis.Redis) -> None:
        put(raw, b"{data}", b"$(date) {id} \xff")
        result = rwq(*DRAIN, "--input", "arg", "--", "printf", "%s|", "--id={id}", "{data}", "{}")
        # What stands in the data is not replaced again.
        assert result.out == b"--id={data}|$(date) {id} \xff|{}|"

    def test_what_cannot_be_an_argument_is_buried(self, rwq: Rwq, raw: redis.Redis) -> None:
        put(raw, b"1", b"a\0b")
        put(raw, b"2", b"x" * 200_000)
        put(raw, b"3", b"fine")
        result = rwq(*DRAIN, "--input", "arg", "--", "echo", "{data}")
        assert (result.code, result.text) == (3, "fine\n")
        nul, long = (raw.get(f"jobs:lease:{item_id}") or b"" for item_id in (1, 2))
        assert nul.startswith(b"rwq-buried:NUL cannot be part of an argument")
        too_long = b"rwq-buried:the arguments are too long; see --input stdin and --input"
        assert long.startswith(too_long)

    @pytest.mark.parametrize(
        ("line", "said"),
        {
            "-- echo {data}": "{data} needs --input arg; ",
            "-- echo x{file}": "{file} needs --input file; ",
            "--input file -- echo": "--input file needs {file} among the arguments",
            "--input arg -- {data}": "--input arg needs {data} among the arguments",
            "--batch 2 -- echo {id}": "{id} cannot be used with --batch; ",
            "--batch 2 --input none -- a": "--batch and --input cannot be used",
            "--batch 2 --result -- a": "--batch and --result cannot be used",
            "--task-dir . -- a": "--task-dir and a command cannot be used together",
            "--task-dir . --batch 2": "--task-dir and --batch cannot be used together",
            "--task-dir /nowhere": "--task-dir: no such directory: /nowhere; ",
            "--clean 10ms -- true": "--clean must be at least 1s; ",
            "-j 100000000 -- true": "100,000,000 commands at once need ",
            "--joblog /nowhere/log -- true": "cannot write the job log /nowhere/log: ",
        }.items(),
    )
    def test_options_that_do_not_fit_are_an_error(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign, line: str, said: str
    ) -> None:
        foreign.waiting(b"1")
        before = contents(raw)
        result = rwq("work", "--drain", *line.split())
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith(f"rwq: error: {said}")
        assert contents(raw) == before

    def test_a_placeholder_is_literal_beside_an_input(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        assert rwq(*DRAIN, "--input", "stdin", "--", "echo", "{data}").text == "{data}\n"

    def test_options_of_the_command_are_its_own(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1")
        result = rwq(*DRAIN, "printf", "%s ", "--yes=x", "-o", "json", "--help", "--", "-q")
        assert result.text == "--yes=x -o json --help -- -q "


class TestEnvironment:
    def variables(self, rwq: Rwq, **more: str) -> dict[str, str]:
        """The variables of the one command that is run."""
        result = rwq(
            *DRAIN,
            "--",
            sys.executable,
            "-c",
            "import json, os\n"
            "print(json.dumps({k: os.fsencode(v).decode('latin-1')"
            " for k, v in os.environ.items() if k.startswith('RWQ_')}))",
            variables=more,
        )
        assert result.code == 0, result.notes
        found: dict[str, str] = result.json
        return found

    def test_names_the_item_and_the_session(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"4f2a9c")
        raw.hset("jobs:returns", "4f2a9c", 0)
        found = self.variables(rwq, RWQ_ID="other", RWQ_ID_B64="other")
        session = found.pop("RWQ_SESSION")
        assert session.startswith("s1+")
        assert re.fullmatch(r"[0-9a-f]{16}\.1", found.pop("RWQ_WORKER"))
        assert found == {
            "RWQ_URL": rwq.variables["RWQ_URL"],
            "RWQ_QUEUE": "jobs",
            "RWQ_ID": "4f2a9c",
            "RWQ_ATTEMPT": "1",
            "RWQ_RETURNS": "0",
            "RWQ_LAST": "1",
            "RWQ_LEASE_SECONDS": "300",
            "RWQ_SLOT": "0",
        }

    def test_an_id_that_is_no_text_is_also_in_base64(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"\xffa")
        found = self.variables(rwq)
        assert (found["RWQ_ID"], found["RWQ_ID_B64"]) == ("\xffa", "/2E=")

    def test_rwq_works_inside(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2", b"3")
        inside = (
            'case $RWQ_ID in 1) rwq touch --for 1h "$RWQ_ID" -Q; rwq leases -o ids;; '
            '2) rwq bury "$RWQ_ID" --reason odd;; 3) rwq release --mine; esac'
        )
        result = rwq.shell(
            f"rwq work -u $URL -q jobs --max 3 -- sh -c '{inside}'",
            {"URL": rwq.variables["RWQ_URL"], "RWQ_URL": "", "RWQ_QUEUE": ""},
        )
        assert (result.code, result.text) == (0, "1\n")
        # What a successful command did to its own item is no news.
        assert "not completed" not in result.notes
        assert result.notes.splitlines()[-1].startswith("completed 1, lost 2 (jobs on unix://")
        assert raw.get("jobs:lease:2") == b"rwq-buried:odd"
        assert raw.lrange("jobs:queue", 0, -1) == [b"3"]

    def test_a_password_is_in_no_argument(self, rwq: Rwq, start_server: StartServer) -> None:
        server = start_server("--requirepass", "secret", password="secret")
        file = rwq.home / "password"
        file.write_text("secret\n")
        with server.client(password="secret") as raw:
            put(raw, b"1", b"data")
        result = rwq(
            *(*DRAIN, "-u", f"unix://default:wrong@{server.socket}", "--password-file", str(file)),
            *script('tr "\\0" " " </proc/$$/cmdline; echo; echo "$RWQ_URL $RWQ_PASSWORD"'),
        )
        assert result.code == 0, result.notes
        command, found = result.text.splitlines()
        assert "secret" not in command
        assert found == f"unix://default@{server.socket} secret"


class TestBatch:
    def test_items_are_json_lines(self, rwq: Rwq, raw: redis.Redis) -> None:
        for number in range(5):
            put(raw, b"%d" % number, b"data %d" % number)
        put(raw, b"\xff", b"\xfe")
        result = rwq(*DRAIN, "--batch", "4", *script('cat; echo "$RWQ_QUEUE ${RWQ_ID-none}"'))
        lines = result.text.splitlines()
        assert (lines[4], lines[7]) == ("jobs none", "jobs none")
        assert json.loads(lines[0]) == {
            "queue": "jobs",
            "queue_b64": None,
            "id": "0",
            "id_b64": None,
            "attempt": 1,
            "returns": 0,
            "last": True,
            "data": "data 0",
            "data_b64": None,
        }
        last = json.loads(lines[6])
        assert (last["id"], last["id_b64"], last["data_b64"]) == (None, "/w==", "/g==")
        assert result.notes == "completed 6\n"

    def test_one_exit_code_is_for_all(self, rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2", b"3")
        result = rwq(*DRAIN, "--batch", "2", *script("grep -q '\"3\"'"))
        assert (result.code, result.notes.splitlines()[-1]) == (3, "completed 1, buried 2")
        assert raw.zrange("jobs:buried", 0, -1) == [b"1", b"2"]

    def test_a_batch_is_of_one_queue(self, rwq: Rwq, raw: redis.Redis) -> None:
        for queue in ("high", "low"):
            raw.set(f"{queue}:item:1", "data")
            raw.lpush(f"{queue}:queue", "1")
        queues = ("-q", "high", "-q", "low")
        result = rwq(*DRAIN, *queues, "--batch", "9", *script('echo "$RWQ_QUEUE"; wc -l'))
        assert result.text == "high\n1\nlow\n1\n"


class TestTasks:
    @pytest.fixture(autouse=True)
    def tasks(self, rwq: Rwq) -> None:
        directory = rwq.home / "tasks"
        directory.mkdir()
        task = directory / "greet"
        task.write_text('#!/bin/sh\necho "hello: $# $*"; wc -c\n')
        task.chmod(0o755)
        (directory / "README").write_text("no program\n")

    @pytest.mark.parametrize(
        ("data", "out"),
        {
            b'["greet", ["ann", 7, null, {"a": "\xc3\xbc"}]]': 'hello: 4 ann 7 null {"a":"ü"}',
            b'["greet", [1.50, 1e400, {"a": [1E5, NaN]}]]': 'hello: 3 1.50 1e400 {"a":[1E5,NaN]}',
            b'["greet"]': "hello: 0 ",
            b'{"task": "greet", "to": ["\\ud800", -Infinity]}': "hello: 0 ",
        }.items(),
    )
    def test_runs_the_program_that_the_data_name(
        self, rwq: Rwq, raw: redis.Redis, data: bytes, out: str
    ) -> None:
        put(raw, b"1", data)
        result = rwq(*DRAIN, "--task-dir", str(rwq.home / "tasks"))
        assert result.as_tuple() == (0, f"{out}\n{len(data)}\n", "completed 1\n")

    def test_buries_what_names_none(self, rwq: Rwq, raw: redis.Redis) -> None:
        neither = 'no task: neither ["NAME", [ARGS...]] nor {"task": "NAME", ...}'
        cases = {
            b"greet": "no task: the data is not JSON",
            b"\xff": "no task: the data is not JSON",
            b"[" * 100_000: "no task: the data is not JSON",
            b"17": neither,
            b'["greet", "ann"]': neither,
            b'{"task": 7}': neither,
            b'["other"]': "unknown task 'other': no such program in ",
            b'["README"]': "unknown task 'README': its program is not executable",
            b'["../tasks/greet"]': "unknown task '../tasks/greet': not the name of a program",
            b'{"task": ".."}': "unknown task '..': not the name of a program",
            b'["greet", [["\\ud800"]]]': "no task: an argument cannot be written as JSON: ",
        }
        for number, data in enumerate(cases):
            put(raw, b"%d" % number, data)
        assert rwq("work", "--drain", "--task-dir", str(rwq.home / "tasks")).code == 3
        guards = [(raw.get(f"jobs:lease:{at}") or b"").decode() for at in range(len(cases))]
        reasons = [f"rwq-buried:{reason}" for reason in cases.values()]
        starts = [guard[: len(reason)] for guard, reason in zip(guards, reasons, strict=True)]
        assert starts == reasons


class TestOutput:
    def test_a_result_holds_one_mebibyte(self, rwq: Rwq, raw: redis.Redis) -> None:
        put(raw, b"1", b"a")
        result = rwq(*DRAIN, "--result", *script("head -c 3000000 /dev/zero"))
        assert result.as_tuple() == (
            0,
            "",
            "rwq: 1: its command printed more than 1 MiB; only the first MiB is kept as its "
            "result\n"
            "completed 1\n",
        )
        assert rwq("result", "1", "-o", "data").out == b"\0" * (1 << 20)

    def test_jsonl_is_of_events_and_stdout_is_on_stderr(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2")
        result = rwq.process(*DRAIN, "-o", "jsonl", *script('echo out; [ "$RWQ_ID" = 1 ]'))
        events = result.jsonl
        assert [(event["event"], event["id"], event["exit"]) for event in events] == [
            ("started", "1", None),
            ("completed", "1", 0),
            ("started", "2", None),
            ("buried", "2", 1),
        ]
        assert events[3]["reason"] == "exit 1"
        assert (events[3]["gave_up"], events[1]["gave_up"]) == (True, False)
        assert len({tuple(event) for event in events}) == 1, "no field is left out"
        assert result.notes.count("out\n") == 2

    def test_quiet_shows_failures_only(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2")
        assert rwq(*DRAIN, "-Q", *script('[ "$RWQ_ID" = 1 ]')).as_tuple() == (
            3,
            "",
            "rwq: 2: exit 1; buried after attempt 1\n",
        )

    def test_the_job_log_has_a_line_for_each_item(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"tab\there")
        log = rwq.home / "log.tsv"
        log.write_text("before\n")
        words = ("--joblog", str(log), *script('[ "$RWQ_ID" = 1 ] || { echo no >&2; exit 9; }'))
        assert rwq(*DRAIN, *words).code == 3
        first, *lines = log.read_text().splitlines()
        cells = [line.split("\t") for line in lines]
        assert first == "before"
        assert [each[1:7] for each in cells] == [
            ["jobs", "1", "1", "completed", "0", ""],
            ["jobs", "tab\\there", "1", "buried", "9", ""],
        ]
        assert [each[8] for each in cells] == ["", "exit 9: no"]
        assert all(float(each[0]) > 1e9 and float(each[7]) >= 0 for each in cells)


class TestDryRun:
    def test_shows_the_next_item_and_its_command(
        self, rwq: Rwq, raw: redis.Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"it's", b"2")
        before = contents(raw)
        words = ("work", "--dry-run", "--", "touch", "{id}", "$x")
        assert rwq(*words).as_tuple() == (
            0,
            "    item  it's\n   queue  jobs\nreturned  0 times\n command  touch 'it'\"'\"'s' '$x'\n"
            "   stdin  12 B\n",
            "dry run: this would be run next\n",
        )
        assert rwq(*words, variables={"RWQ_OUTPUT": "json"}).json == {
            "queue": "jobs",
            "queue_b64": None,
            "id": "it's",
            "id_b64": None,
            "items": 1,
            "returns": 0,
            "command": ["touch", "it's", "$x"],
            "stdin_bytes": 12,
            "reason": None,
        }
        assert contents(raw) == before


def test_queues_are_taken_in_order(rwq: Rwq, raw: redis.Redis) -> None:
    for queue in ("low", "high"):
        for number in range(2):
            raw.set(f"{queue}:item:{number}", "data")
            raw.lpush(f"{queue}:queue", number)
    result = rwq(*DRAIN, "-q", "high", "-q", "low", *script('echo "$RWQ_QUEUE $RWQ_ID"; exit 100'))
    assert result.text == "high 0\nhigh 1\nlow 0\nlow 1\n"
    assert result.notes.splitlines()[0] == "rwq: 0 of high: exit 100; buried after attempt 1"
    assert result.notes.splitlines()[-1].startswith("buried 4 (high, low on ")


def test_light_cleans_run_meanwhile(rwq: Rwq, raw: redis.Redis, foreign: Foreign) -> None:
    foreign.abandoned(b"1")
    result = rwq.process("work", "--clean", "1s", "--max", "1", "--", "true")
    # The worker may end before the clean has said what it did.
    assert (result.code, result.text, result.notes.splitlines()[-1]) == (0, "", "completed 1")
    assert raw.exists("jobs:item:1") == 0
