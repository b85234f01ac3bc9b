"""`--watch`: in place on a terminal, further records elsewhere."""

import signal
import threading
from collections.abc import Callable

import pytest

from tests.conftest import Foreign, StartServer, absent
from tests.driver import Rwq, until
from tests.terminal import shown

CTRL_C = b"\x03"
COMMANDS = ("stats", "stats --fast", "queues", "leases", "ls")


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("command", COMMANDS)
def test_each_tick_has_its_records_in_a_pipe(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], command: str
) -> None:
    foreign.waiting(b"w1")
    foreign.leased(b"l1")
    pauses(lambda: foreign.data(b"unseen"), lambda: None)
    result = rwq(*command.split(), "--watch", "20s", "-o", "jsonl")
    assert (result.code, result.notes) == (130, "")
    times = [record.pop("at_ms") for record in result.jsonl]
    assert (len(times), times) == (3, sorted(times))
    once = rwq(*command.split(), "-o", "jsonl").jsonl
    names = ("queue", "id", "waiting", "state")
    seen = [{name: record.get(name) for name in names} for record in result.jsonl]
    assert seen == [{name: record.get(name) for name in names} for record in once * 3]
    # Items have no rates.
    has_rates = command not in ("ls", "leases")
    assert all(("added_per_second" in record) == has_rates for record in result.jsonl)
    pauses(lambda: None)
    result = rwq(*command.split(), "--watch", "20s")
    columns = [line.split("\t") for line in result.text.splitlines()]
    assert [len(each) for each in columns] == [len(columns[0])] * 2
    assert all(each[-4 if has_rates else -1].isdecimal() for each in columns)
    assert columns[0][0] == {"leases": "l1", "ls": "w1"}.get(command, "jobs")


def test_notes_come_once(rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]) -> None:
    pauses(lambda: None, lambda: None)
    assert rwq("stats", "--watch", "20s", "-o", "ids").notes == absent(rwq.variables["RWQ_URL"])
    foreign.waiting(b"a")
    pauses(lambda: None, lambda: None)
    result = rwq("ls", "all", "--watch", "20s", "--fields", "id", "-o", "plain")
    assert result.text == "a\n" * 3
    assert result.notes.count("--deep also shows items in no list\n") == 1


@pytest.mark.needs("no-touch")
class TestOnATerminal:
    @pytest.mark.parametrize("command", ["stats", "ls"])
    def test_only_the_last_frame_is_left(self, rwq: Rwq, foreign: Foreign, command: str) -> None:
        foreign.waiting(*(b"%02d" % number for number in range(50)))
        steps = [(b", every 30ms", b""), (b", every 30ms", b""), (b", every 30ms", CTRL_C)]
        code, seen = rwq.on_terminal(*command.split(), "--watch", "30ms", type_in=steps)
        lines = shown(seen)
        assert code == 130
        assert sum("every 30ms" in line for line in lines) == 1
        assert "every 30ms" in lines[-1]
        # No longer than the terminal.
        said = {"ls": "more below", "stats": "done 0/s"}[command]
        assert said in "\n".join(lines)

    def test_what_is_shown_is_old_if_the_server_is_silent(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            Foreign(raw).waiting(b"w1")

            def looks() -> int:
                return int(raw.info("commandstats").get("cmdstat_time", {}).get("calls", 0))

            def stop_after_two_ticks() -> None:
                until(lambda: looks() >= before + 3)
                server.process.send_signal(signal.SIGSTOP)

            before = looks()
            stopping = threading.Thread(target=stop_after_two_ticks)
            stopping.start()
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
