"""`rwq check`: one line and the codes of monitoring, whatever goes wrong."""

import os
import re
import signal

import pytest

from rwq_cli.exit_codes import MonitoringStatus
from tests.conftest import Foreign, StartServer, absent, contents
from tests.driver import Rwq, configure

# A plugin's line: what it says, and behind the one bar its data.
PLUGIN_LINE = re.compile(
    r"RWQ (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+"
    r"( \|( [a-z]+=(U|\d+s?(;[\d.:~@]*){3}))+)?\n"
)
NOTHING_ELSE = (
    "processing=0;;;0 delayed=0;;;0 due=0;;;0 buried=0;;;0 held=0;;;0 lease=0s;;;0 returned=0;;;0"
)


@pytest.fixture
def filled(foreign: Foreign) -> Foreign:
    """Three waiting, two abandoned, one leased."""
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.abandoned(b"a1", b"a2")
    foreign.leased(b"l1", ttl_ms=None)
    return foreign


class TestLine:
    def test_an_empty_queue_is_ok(self, rwq: Rwq) -> None:
        assert rwq("check").as_tuple() == (
            0,
            "RWQ OK - jobs: no such queue, or it is empty; 0 waiting, oldest 0s, 0 abandoned"
            f" | waiting=0;;;0 age=0s;;;0 abandoned=0;;;0 {NOTHING_ELSE}\n",
            absent(rwq.variables["RWQ_URL"]),
        )

    def test_limits_are_in_the_line(self, rwq: Rwq, filled: Foreign) -> None:
        before = contents(filled.raw)
        words = ("--warn", "waiting=2", "--critical", "waiting=1000", "--critical", "age=1h30m")
        result = rwq("check", *words, "--warn", "buried=5")
        text = re.sub(r"\b\ds", "0s", result.text)
        assert (result.code, text, result.notes) == (
            1,
            "RWQ WARNING - jobs: 3 waiting (above 2), oldest 0s, 2 abandoned, 0 buried"
            " | waiting=3;2;1000;0 age=0s;;5400;0 abandoned=2;;;0 processing=3;;;0"
            " delayed=0;;;0 due=0;;;0 buried=0;5;;0 held=1;;;0 lease=0s;;;0 returned=0;;;0\n",
            "",
        )
        assert contents(filled.raw) == before

    def test_an_age_that_a_restart_has_cut_short_says_so(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            foreign = Foreign(raw, b"jobs")
            foreign.waiting(b"w1")
            words = ("check", "-u", server.url, "--critical", "age=1h")
            foreign.unused_for(b"w1", 2)
            assert re.match(
                r"RWQ OK - jobs: 1 waiting, age>=(\d)s, server up \d+s, 0 abandoned \| "
                r"waiting=1;;;0 age=\1s;;3600;0 ",
                rwq(*words).text,
            )
            foreign.unused_for(b"w1", 3700)
            assert "oldest unknown" in rwq(*words).text
            assert rwq(*words).code == 3

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            *((b"a|b=1;2", "a\\x7cb=1;2"), (b"a\nRWQ OK", "a\\nRWQ OK")),
            *((b"\xff\x1b[2J", "\\xff\\x1b[2J"), ("caf\u202e".encode(), "caf\\u202e")),
        ],
    )
    def test_a_strange_queue_name_is_escaped(self, rwq: Rwq, name: bytes, text: str) -> None:
        result = rwq("check", "-q", os.fsdecode(name))
        assert result.text.startswith(f"RWQ OK - {text}: no such queue, or it is empty; ")
        assert PLUGIN_LINE.fullmatch(result.text)


@pytest.mark.parametrize("words", ["-q nothing:*", "--all-queues"])
def test_none_of_what_must_exist_is_an_alarm(rwq: Rwq, words: str) -> None:
    alarm = "RWQ CRITICAL - no queues, or all are empty\n"
    assert rwq("check", *words.split()).code == int(MonitoringStatus.OK)
    result = rwq("check", "--must-exist", *words.split())
    assert (result.code, result.text) == (int(MonitoringStatus.CRITICAL), alarm)


class TestUnknown:
    """A monitor reads stdout; and code 2, which is a usage error elsewhere, would be an alarm."""

    @pytest.mark.parametrize("words", [(), ("--all-queues",), ("-q", "jobs", "-q", "other")])
    def test_a_silent_server_is_unknown_in_time(
        self,
        rwq: Rwq,
        start_server: StartServer,
        monkeypatch: pytest.MonkeyPatch,
        words: tuple[str, ...],
    ) -> None:
        monkeypatch.setattr("rwq_cli.commands.check.ANSWERS_WITHIN_S", 0.3)
        server = start_server()
        server.process.send_signal(signal.SIGSTOP)
        try:
            result = rwq("check", "-u", server.url, *words)
        finally:
            server.process.send_signal(signal.SIGCONT)
        said = "RWQ UNKNOWN - no answer within 0.3s; is the server busy, or the network slow?\n"
        assert result.as_tuple() == (3, said, "")


def test_a_missing_password_is_not_the_servers_fault(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server's time ends in an hour: on a busy machine, too, the password's is over before.
    monkeypatch.setattr("rwq_cli.commands.check.ANSWERS_WITHIN_S", 3600.0)
    monkeypatch.setattr("rwq_cli.commands.check.PASSWORD_SHARE", 1e-4)
    configure(rwq.home, '[contexts.a]\nurl = "redis://a"\npassword_command = "sleep 60"\n')
    result = rwq("check", "-c", "a")
    said = r"RWQ UNKNOWN - the password_command of context a did not end within 0\.\d+ s; "
    assert (result.code, result.notes) == (3, "")
    assert re.match(said, result.text)


class TestPrometheus:
    def test_prometheus_has_every_count_of_every_queue(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("check", "--format", "prometheus", "-q", "jobs", "-q", "none")
        text = re.sub(r'(seconds\{queue="jobs"\}) [01]\n', r"\1 0\n", result.text)
        assert (result.code, result.notes) == (0, absent(rwq.variables["RWQ_URL"], "none"))
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        server = [line for line in samples if "_server_" in line]
        samples = samples[len(server) :]
        assert samples == [
            f'rwq_{name}{{queue="{queue}"}} {value}'
            for name, jobs, none in (
                ("up", 1, 1),
                ("oldest_waiting_seconds", 0, 0),
                ("longest_lease_seconds", 0, 0),
                ("waiting_items", 3, 0),
                ("processing_items", 3, 0),
                ("leased_items", 0, 0),
                ("held_items", 1, 0),
                ("abandoned_items", 2, 0),
                ("delayed_items", 0, 0),
                ("due_items", 0, 0),
                ("buried_items", 0, 0),
                ("returned_items", 0, 0),
            )
            for queue, value in (("jobs", jobs), ("none", none))
        ]
        assert filled.raw.llen("jobs:queue") == 3

    def test_the_worst_queue_decides(self, rwq: Rwq, filled: Foreign) -> None:
        filled.raw.set("broken:queue", "text")
        result = rwq("check", "--format", "prometheus", "-q", "broken", "-q", "jobs")
        assert result.code == 3
        assert 'rwq_up{queue="broken"} 0\nrwq_up{queue="jobs"} 1\n' in result.text
        assert 'rwq_waiting_items{queue="jobs"} 3\n' in result.text
        assert 'rwq_waiting_items{queue="broken"}' not in result.text
