"""`rwq check`: one line and the codes of monitoring, whatever goes wrong."""

import os
import re
import signal
import subprocess

import pytest

from rwq_cli.core.inspect.thresholds import Limits, Measure, evaluate
from rwq_cli.core.model import Counts
from rwq_cli.exit_codes import MonitoringStatus
from rwq_cli.views.monitoring import nagios_line, prometheus_text
from tests.conftest import ABSENT, Foreign, StartServer, contents
from tests.driver import TIMEOUT_S, Rwq, configure, until

NOWHERE = ("-u", "redis://127.0.0.1:1/0")
# A plugin's line: what it says, and behind the one bar its data.
PLUGIN_LINE = re.compile(
    r"RWQ (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+"
    r"( \|( [a-z]+=(U|\d+s?(;[\d.]*){3}))+)?\n"
)
FIELDS = [
    *("queue", "queue_b64", "status", "waiting", "oldest_waiting_seconds", "abandoned"),
    *("processing", "delayed", "buried", "orphaned", "alerts", "server_up_seconds"),
]
NOTHING_ELSE = "processing=0;;;0 delayed=0;;;0 buried=0;;;0"


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
            ABSENT,
        )

    def test_limits_are_in_the_line(self, rwq: Rwq, filled: Foreign) -> None:
        before = contents(filled.raw)
        words = ("--warn", "waiting=2", "--critical", "waiting=1000", "--critical", "age=1h30m")
        result = rwq("check", *words, "--warn", "buried=5")
        text = re.sub(r"\b1s", "0s", result.text)
        assert (result.code, text, result.notes) == (
            1,
            "RWQ WARNING - jobs: 3 waiting (above 2), oldest 0s, 2 abandoned, 0 buried"
            " | waiting=3;2;1000;0 age=0s;;5400;0 abandoned=2;;;0 processing=3;;;0"
            " delayed=0;;;0 buried=0;5;;0\n",
            "",
        )
        assert contents(filled.raw) == before

    def test_large_numbers_are_grouped(self) -> None:
        counts = Counts(b"jobs", 1_234_567, 9, 0, 0, abandoned=0, oldest_waiting_s=86_400)
        limits = {Measure.WAITING: Limits(1000, 1_000_000), Measure.AGE: Limits(0.5)}
        assert nagios_line(evaluate(counts, limits)) == (
            "RWQ CRITICAL - jobs: 1,234,567 waiting (above 1,000,000), oldest 1d (above 0.5s), "
            "0 abandoned | waiting=1234567;1000;1000000;0 age=86400s;0.5;;0 abandoned=0;;;0 "
            "processing=9;;;0 delayed=0;;;0 buried=0;;;0\n"
        )

    def test_an_unknown_age_is_left_out(self) -> None:
        counts = Counts(b"jobs", 1, 0, 0, 0, abandoned=0)
        assert nagios_line(evaluate(counts, {Measure.AGE: Limits(critical=60)})) == (
            "RWQ UNKNOWN - jobs: 1 waiting, oldest unknown, 0 abandoned"
            f" | waiting=1;;;0 age=U abandoned=0;;;0 {NOTHING_ELSE}\n"
        )

    def test_an_age_that_a_restart_has_cut_short_says_so(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            foreign = Foreign(raw, b"jobs")
            foreign.waiting(b"w1")
            words = ("check", "-u", server.url, "--critical", "age=1h")
            foreign.unused_for(b"w1", 70)
            assert re.match(
                r"RWQ OK - jobs: 1 waiting, age>=7\ds, server up \d+s, 0 abandoned \| "
                r"waiting=1;;;0 age=7\ds;;3600;0 ",
                rwq(*words).text,
            )
            assert 0 <= rwq(*words, "-o", "json").json["server_up_seconds"] < 70
            foreign.unused_for(b"w1", 3700)
            assert "age>=370" in rwq(*words).text
            assert rwq(*words).code == 2

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            (b"a|b=1;2", "a\\x7cb=1;2"),
            (b"a\nRWQ OK", "a\\nRWQ OK"),
            (b"\xff\x1b[2J", "\\xff\\x1b[2J"),
            ("caf\u202e".encode(), "caf\\u202e"),
        ],
    )
    def test_a_strange_queue_name_is_escaped(self, rwq: Rwq, name: bytes, shown: str) -> None:
        result = rwq("check", "-q", os.fsdecode(name))
        assert result.text.startswith(
            f"RWQ OK - {shown}: no such queue, or it is empty; 0 waiting, "
        )
        assert PLUGIN_LINE.fullmatch(result.text)


@pytest.mark.usefixtures("slept_s")
class TestCodes:
    @pytest.mark.parametrize(
        ("words", "status"),
        [
            ("", MonitoringStatus.OK),
            ("--warn waiting=3 --critical abandoned=2", MonitoringStatus.OK),
            ("--warn waiting=2", MonitoringStatus.WARNING),
            ("--warn waiting=0 --critical waiting=2", MonitoringStatus.CRITICAL),
            ("--warn abandoned=0", MonitoringStatus.WARNING),
            ("--critical abandoned=1", MonitoringStatus.CRITICAL),
            ("--warn processing=2", MonitoringStatus.WARNING),
            ("--critical processing=2", MonitoringStatus.CRITICAL),
            ("--warn delayed=0", MonitoringStatus.OK),
            ("--critical buried=0", MonitoringStatus.OK),
            ("--warn age=1h --critical age=2h", MonitoringStatus.OK),
            ("--warn orphaned=0 --deep", MonitoringStatus.OK),
        ],
    )
    @pytest.mark.usefixtures("filled")
    def test_limits_decide_the_code(self, rwq: Rwq, words: str, status: MonitoringStatus) -> None:
        result = rwq("check", *words.split())
        assert (result.code, result.notes) == (int(status), "")
        assert result.text.startswith(f"RWQ {status.name} - jobs: ")
        assert PLUGIN_LINE.fullmatch(result.text)

    def test_limits_on_delayed_buried_and_orphaned_items(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.delayed(b"d", 9_999_999_999_999)
        foreign.buried(b"b")
        foreign.data(b"o")
        for measure in ("delayed", "buried", "orphaned"):
            result = rwq("check", "--critical", f"{measure}=0", "--deep")
            assert result.code == 2
            assert f"1 {measure} (above 0)" in result.text

    def test_a_process_ends_with_the_code(self, rwq: Rwq, filled: Foreign) -> None:
        assert filled.raw.llen("jobs:queue") == 3
        assert rwq.process("check", "--critical", "waiting=0").code == 2
        assert rwq.process("check", "--warn", "waiting=0").code == 1
        assert rwq.process("check", *NOWHERE).code == 3

    def test_help_lists_these_codes_only(self, rwq: Rwq) -> None:
        text = rwq.process("check", "--help").text.split("Exit codes: ")[1]
        assert re.findall(r"(?:^|;)\s+(\d+) ", text) == ["0", "1", "2", "3", "130", "143"]


class TestUnknown:
    """A monitor reads stdout; and code 2, which is wrong usage elsewhere, would be an alarm."""

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (
                "--warn waiting=x",
                "the limit of waiting cannot be 'x'; it must be a whole number of at least 0",
            ),
            ("--warn waiting=-1", "the limit of waiting cannot be '-1'; it must be a whole number"),
            ("--warn what=1", "no limit can be 'what=1'; give NAME=VALUE; the names are waiting, "),
            ("--what", "no such option: --what"),
            ("extra", "check takes no arguments; did you mean: rwq check -q extra"),
            ("--warn age=soon", "not a duration: 'soon'; "),
            ("--format what", "invalid value for '--format': "),
            ("--warn waiting=2 --critical waiting=1", "--warn waiting is above --critical waiting"),
            (
                "--warn orphaned=1",
                "only a walk over the whole queue counts orphaned items; add --deep",
            ),
            ("-o what", "-o cannot be 'what'; "),
            ("-u http://host", "not a server URL: http://"),
            ("-u redis://127.0.0.1:1/0", "cannot reach redis://127.0.0.1:1/0: "),
            ("-u unix:///nowhere/a|b", "cannot reach unix:///nowhere/a\\x7cb: "),
        ],
    )
    def test_an_error_is_one_line_and_unknown(self, rwq: Rwq, words: str, said: str) -> None:
        result = rwq("check", *words.split())
        assert (result.code, result.notes) == (3, "")
        assert PLUGIN_LINE.fullmatch(result.text)
        assert result.text.startswith(f"RWQ UNKNOWN - {said}")

    def test_without_a_queue_it_is_unknown(self, rwq: Rwq) -> None:
        result = rwq("check", variables={"RWQ_QUEUE": ""})
        assert result.as_tuple() == (
            3,
            "RWQ UNKNOWN - no queue named; give one with -q NAME or in RWQ_QUEUE\n",
            "",
        )

    def test_a_key_of_another_type_is_unknown(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.raw.set("jobs:queue", "text")
        result = rwq("check")
        assert (result.code, result.notes) == (3, "")
        assert result.text.startswith("RWQ UNKNOWN - jobs:queue has the wrong type")

    def test_a_limit_on_an_age_that_the_server_does_not_keep_is_unknown(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server("--maxmemory-policy", "allkeys-lfu")
        with server.client() as raw:
            Foreign(raw, b"jobs").waiting(b"w1")
        words = ("check", "-u", server.url)
        assert rwq(*words).code == 0
        result = rwq(*words, "--critical", "age=1h")
        assert result.code == 3
        assert result.text.startswith("RWQ UNKNOWN - jobs: 1 waiting, oldest unknown, ")
        assert rwq(*words, "--critical", "age=1h", "--warn", "waiting=0").code == 1

    @pytest.mark.parametrize("words", [(), ("--all-queues",), ("-q", "jobs", "-q", "other")])
    def test_a_server_that_does_not_answer_is_unknown_in_time(
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

    def test_a_password_that_does_not_come_is_not_the_servers_fault(
        self, rwq: Rwq, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rwq_cli.commands.check.ANSWERS_WITHIN_S", 0.5)
        os.mkfifo(rwq.home / "fifo", 0o600)
        configure(
            rwq.home,
            '[contexts.a]\nurl = "redis://a"\npassword_command = "sleep 60"\n'
            f'[contexts.b]\nurl = "redis://b"\npassword_file = "{rwq.home}/fifo"\n',
        )
        late = "the password_command of context a did not end within 0.4 s"
        nothing = f"cannot read the password file {rwq.home}/fifo: nothing came within 0.4 s"
        for name, said in (("a", late), ("b", nothing)):
            result = rwq("check", "-c", name)
            assert (result.code, result.notes) == (3, "")
            assert result.text.startswith(f"RWQ UNKNOWN - {said}; ")

    def test_with_json_the_error_is_on_stderr(self, rwq: Rwq) -> None:
        for words, code in (((), "unreachable"), (("--what",), "usage")):
            result = rwq("check", *words, *NOWHERE, "-o", "json")
            assert (result.code, result.text) == (3, "")
            assert f'"code": "{code}"' in result.notes

    def test_an_interrupt_ends_it_with_130(self, rwq: Rwq, filled: Foreign) -> None:
        """While it waits for its second look."""
        last = max(int(client["id"]) for client in filled.raw.client_list())
        process = rwq.start("check", "--warn", "abandoned=0")
        until(lambda: any(int(client["id"]) > last for client in filled.raw.client_list()))
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.4)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
        assert process.returncode == 130


class TestJson:
    def test_json_of_one_queue(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("check", "--warn", "waiting=2", "--deep", "-o", "json")
        assert (result.code, result.notes, list(result.json)) == (1, "", FIELDS)
        age = result.json["oldest_waiting_seconds"]
        assert age in (0, 1)
        assert result.json == {
            "queue": "jobs",
            "queue_b64": None,
            "status": "WARNING",
            "waiting": 3,
            "oldest_waiting_seconds": age,
            "abandoned": 2,
            "processing": 3,
            "delayed": 0,
            "buried": 0,
            "orphaned": 0,
            "alerts": ["WARNING: 3 waiting (above 2)"],
            "server_up_seconds": None,
        }
        assert filled.raw.llen("jobs:queue") == 3

    def test_csv_has_the_fields_of_json(self, rwq: Rwq) -> None:
        header, row = rwq("check", "-o", "csv").text.splitlines()
        assert header.split(",") == FIELDS
        assert row.startswith("jobs,,OK,0,0,0,")


class TestPrometheus:
    def test_prometheus_has_every_count_of_every_queue(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("check", "--format", "prometheus", "-q", "jobs", "-q", "none")
        text = re.sub(r'(seconds\{queue="jobs"\}) [01]\n', r"\1 0\n", result.text)
        assert (result.code, result.notes) == (0, ABSENT.replace("jobs", "none"))
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        assert samples == [
            f'rwq_{name}{{queue="{queue}"}} {value}'
            for name, jobs, none in (
                ("up", 1, 1),
                ("oldest_waiting_seconds", 0, 0),
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

    def test_every_metric_has_its_help_and_type_once_before_its_samples(self, rwq: Rwq) -> None:
        lines = rwq("check", "--format", "prometheus", "--deep").text.splitlines()
        assert len(lines) % 3 == 0
        for help_line, type_line, sample in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            name = sample.partition("{")[0]
            assert help_line.startswith(f"# HELP {name} ")
            assert type_line == f"# TYPE {name} gauge"
        assert 'rwq_ghosts{queue="jobs"} 0' in lines

    def test_the_queues_name_is_a_quoted_label(self) -> None:
        counts = Counts(b'a"b\\c\n\xff|', 1, 0, 0, 0)
        text = prometheus_text([counts.queue], [evaluate(counts, {})])
        assert text.splitlines()[2] == 'rwq_up{queue="a\\"b\\\\c\\\\n\\\\xff|"} 1'

    def test_an_unreachable_server_is_down(self, rwq: Rwq) -> None:
        result = rwq("check", "--format", "prometheus", *NOWHERE)
        assert (result.code, result.text) == (
            3,
            "# HELP rwq_up Whether the queue could be read.\n"
            "# TYPE rwq_up gauge\n"
            'rwq_up{queue="jobs"} 0\n',
        )
        assert result.notes.startswith("rwq: error: cannot reach redis://127.0.0.1:1/0")

    def test_the_worst_queue_decides(self, rwq: Rwq, filled: Foreign) -> None:
        filled.raw.set("broken:queue", "text")
        result = rwq("check", "--format", "prometheus", "-q", "broken", "-q", "jobs")
        assert result.code == 3
        assert 'rwq_up{queue="broken"} 0\nrwq_up{queue="jobs"} 1\n' in result.text
        assert 'rwq_waiting_items{queue="jobs"} 3\n' in result.text
        assert 'rwq_waiting_items{queue="broken"}' not in result.text

    def test_limits_decide_the_code(self, rwq: Rwq, filled: Foreign) -> None:
        words = ("check", "--format", "prometheus", "-q", "none", "-q", "jobs")
        assert rwq(*words, "--warn", "waiting=2").code == 1
        assert rwq(*words, "--warn", "waiting=3").code == 0
        assert filled.raw.llen("jobs:queue") == 3

    def test_json_of_several_queues(self, rwq: Rwq) -> None:
        result = rwq("check", "--format", "prometheus", "-q", "a", "-q", "b", "-o", "json")
        assert [record["queue"] for record in result.json] == ["a", "b"]
