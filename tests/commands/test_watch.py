"""`--watch`: in place on a terminal, further records elsewhere."""

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from rwq_cli.core.clock import SystemClock
from tests.conftest import ABSENT, Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, until
from tests.output.emulator import shown

CTRL_C = b"\x03"
COMMANDS = ("stats", "stats --fast", "queues", "leases", "ls")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what happens in place of each pause; Ctrl-C ends the last one."""

    def set_up(*steps: Callable[[], object]) -> None:
        remaining = list(steps)

        def sleep(*_: object) -> None:
            if not remaining:
                raise KeyboardInterrupt
            remaining.pop(0)()

        monkeypatch.setattr(SystemClock, "sleep", sleep)

    return set_up


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("command", COMMANDS)
def test_each_tick_has_its_records(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], command: str
) -> None:
    foreign.waiting(b"w1")
    foreign.leased(b"l1")
    pauses(lambda: foreign.data(b"unseen"), lambda: None)
    result = rwq(*command.split(), "--watch", "20s", "-o", "jsonl")
    assert (result.code, result.notes) == (130, "")
    times = [record.pop("at_ms") for record in result.jsonl]
    assert times == sorted(times)
    assert len(times) == 3
    once = rwq(*command.split(), "-o", "jsonl").jsonl
    names = ("queue", "id", "waiting", "state")
    seen = [{name: record.get(name) for name in names} for record in result.jsonl]
    assert seen == [{name: record.get(name) for name in names} for record in once * 3]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_record_is_a_line_in_a_pipe(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], command: str
) -> None:
    foreign.waiting(b"w1")
    foreign.leased(b"l1")
    pauses(lambda: foreign.waiting(b"w2"))
    result = rwq(*command.split(), "--watch", "20s")
    columns = [line.split("\t") for line in result.text.splitlines()]
    assert len(columns) == (3 if command == "ls" else 2)
    assert {len(each) for each in columns} == {len(columns[0])}
    has_rates = command not in ("ls", "leases")
    assert all(each[-4 if has_rates else -1].isdecimal() for each in columns)
    assert columns[0][0] == {"leases": "l1", "ls": "w1"}.get(command, "jobs")


def test_csv_has_one_header(rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]) -> None:
    foreign.waiting(b"w1")
    pauses(lambda: None)
    result = rwq("queues", "--watch", "20s", "-o", "csv")
    header, *lines = result.lines
    assert ",in_per_second,left_per_second,empty_in_seconds,at_ms" in header
    assert [line.split(",")[0] for line in lines] == ["jobs", "jobs"]


@pytest.mark.parametrize("command", ["stats", "stats --fast", "queues", "stats -q jobs -q other"])
def test_queues_have_rates(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], command: str
) -> None:
    def work() -> None:
        foreign.waiting(*(b"%d" % number for number in range(40)))
        foreign.raw.rpop("jobs:queue", 10)

    foreign.waiting(*(b"w%d" % number for number in range(20)))
    pauses(work)
    records = rwq(*command.split(), "--watch", "20s", "-o", "jsonl").jsonl
    first, second = (record for record in records if record["queue"] == "jobs")
    names = ("in_per_second", "left_per_second", "empty_in_seconds", "rates_are_least")
    assert [first[name] for name in names] == [None, None, None, False]
    assert second["left_per_second"] > 0
    assert second["in_per_second"] == pytest.approx(4 * second["left_per_second"], rel=0.01)
    assert [second[name] for name in names[2:]] == [None, False]


def test_items_have_no_rates(rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]) -> None:
    foreign.waiting(b"w1")
    pauses()
    (record,) = rwq("ls", "--watch", "20s", "-o", "jsonl").jsonl
    assert "in_per_second" not in record


def test_fields_may_include_the_time(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]
) -> None:
    foreign.waiting(b"w1")
    pauses()
    result = rwq("stats", "--watch", "20s", "--fields", "waiting,at_ms", "-o", "jsonl")
    (record,) = result.jsonl
    assert list(record) == ["waiting", "at_ms"]


def test_a_missing_queue_is_noted_once(
    rwq: Rwq, raw: redis.Redis, pauses: Callable[..., None]
) -> None:
    assert raw.keys() == []
    pauses(lambda: None, lambda: None)
    assert rwq("stats", "--watch", "20s", "-o", "ids").notes == ABSENT


def test_what_is_not_looked_for_is_noted_once(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]
) -> None:
    foreign.waiting(b"a")
    pauses(lambda: None, lambda: None)
    result = rwq("ls", "all", "--watch", "20s", "--fields", "id", "-o", "plain")
    assert result.text == "a\n" * 3
    assert result.notes.count("--deep also shows items in no list\n") == 1


@pytest.mark.parametrize("words", [("-o", "json"), ("--watch", "0"), ("--watch", "often")])
def test_bad_options_are_refused(rwq: Rwq, words: tuple[str, ...]) -> None:
    result = rwq("stats", "--watch", "1s", *words)
    assert (result.code, result.text) == (2, "")


@pytest.mark.needs("no-touch")
def test_a_closed_pipe_ends_it(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w1")
    process = rwq.start("stats", "--watch", "20ms", bufsize=0)
    assert next_line(process.stdout).startswith(b"jobs\t1\t")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_sigterm_ends_it(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w1")
    process = rwq.start("stats", "--watch", "1h", bufsize=0)
    next_line(process.stdout)
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_a_lost_server_is_waited_for(rwq: Rwq, start_server: StartServer, tmp_path: Path) -> None:
    server, link = start_server(), tmp_path / "socket"
    link.symlink_to(server.socket)
    with server.client() as raw:
        Foreign(raw).waiting(b"w1")
    words = ("stats", "--fast", "--watch", "20ms", "-o", "jsonl")
    process = rwq.start(*words, bufsize=0, variables={"RWQ_URL": f"unix://{link}"})
    assert json.loads(next_line(process.stdout))["waiting"] == 1
    server.kill()
    assert b"; trying again until the server responds" in next_line(process.stderr)
    other = start_server()
    with other.client() as raw:
        Foreign(raw).waiting(b"w1", b"w2")
    link.unlink()
    link.symlink_to(other.socket)
    assert b"the server is responding again after " in next_line(process.stderr)
    until(lambda: json.loads(next_line(process.stdout))["waiting"] == 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 130


def after_two_ticks(raw: redis.Redis, act: Callable[[], object]) -> threading.Thread:
    """Starts a thread that acts when the queue has been looked at twice."""

    def looks() -> int:
        return int(raw.info("commandstats").get("cmdstat_time", {}).get("calls", 0))

    def wait_and_act() -> None:
        until(lambda: looks() >= before + 3)
        act()

    before = looks()
    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


@pytest.mark.needs("no-touch")
class TestOnATerminal:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_only_the_last_frame_is_left(self, rwq: Rwq, foreign: Foreign, command: str) -> None:
        foreign.waiting(b"w1")
        foreign.leased(b"l1")
        steps = [(b", every 30ms", b""), (b", every 30ms", b""), (b", every 30ms", CTRL_C)]
        code, seen = rwq.on_terminal(*command.split(), "--watch", "30ms", type_in=steps)
        lines = shown(seen)
        assert code == 130
        assert sum("every 30ms" in line for line in lines) == 1
        assert sum("w1" in line or "l1" in line or "jobs" in line for line in lines) <= 2
        assert "every 30ms" in lines[-1]

    def test_it_shows_what_has_changed(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"w1")
        adding = after_two_ticks(foreign.raw, lambda: foreign.waiting(b"w2"))
        steps = [(b"data of w2", b""), (b", every 30ms", CTRL_C)]
        _, seen = rwq.on_terminal("ls", "--watch", "30ms", type_in=steps)
        adding.join()
        ids = [line.split()[1] for line in shown(seen) if "data of" in line]
        assert ids == ["w1", "w2"]

    def test_a_terminal_that_cannot_redraw_gets_report_after_report(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w1")
        code, seen = rwq.on_terminal(
            *("ls", "--watch", "30ms"),
            type_in=[(b"w1", b""), (b"w1", CTRL_C)],
            variables={"TERM": "dumb"},
        )
        assert code == 130
        assert b"\x1b" not in seen

    @pytest.mark.parametrize("command", ["stats", "queues"])
    def test_it_shows_rates(self, rwq: Rwq, foreign: Foreign, command: str) -> None:
        foreign.waiting(b"w1")
        rate = {"stats": b"left 0/s", "queues": b"LEFT/S"}[command]
        type_in = [(rate, b""), (b", every 30ms", CTRL_C)]
        code, seen = rwq.on_terminal(command, "--watch", "30ms", type_in=type_in)
        assert code == 130
        assert rate.decode() in "\n".join(shown(seen))

    def test_it_is_no_longer_than_the_terminal(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%02d" % number for number in range(50)))
        _, seen = rwq.on_terminal(
            *("ls", "--watch", "30ms"),
            type_in=[(b", every 30ms", b""), (b", every 30ms", CTRL_C)],
        )
        lines = shown(seen)
        assert len(lines) == 24
        assert "every 30ms" in lines[-1]

    def test_a_lost_server_is_named_below_the_last_report(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            Foreign(raw).waiting(b"w1")
            killing = after_two_ticks(raw, server.process.kill)
            code, seen = rwq.on_terminal(
                *("ls", "--watch", "30ms", "-u", server.url),
                type_in=[(b", every 30ms", b""), (b"unix://", CTRL_C)],
            )
            killing.join()
        lines = shown(seen)
        assert code == 130
        assert "w1" in " ".join(lines)
        # Cut to the width of the terminal.
        assert f"unix://{server.socket}"[:30] in lines[-1]

    def test_what_is_shown_is_old_once_the_server_does_not_answer(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            Foreign(raw).waiting(b"w1")
            stopping = after_two_ticks(raw, lambda: server.process.send_signal(signal.SIGSTOP))
            code, seen = rwq.on_terminal(
                *("queues", "--watch", "30ms", "-u", server.url),
                type_in=[(b", every 30ms", b""), (b": OLD: no answer for 1s", CTRL_C)],
            )
            server.process.send_signal(signal.SIGCONT)
            stopping.join()
        lines = shown(seen)
        assert code == 130
        assert lines[2].split()[:2] == ["jobs", "1"]
        assert "OLD: no answer" in lines[3]
