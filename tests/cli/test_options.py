"""The options of every command: before and after its name, their variables, the password."""

import json
import re
import signal
from pathlib import Path

import pytest
import redis

from tests.conftest import Foreign, StartServer
from tests.driver import Rwq
from tests.servers import PrivateServer


def test_options_before_and_after_the_command(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw, b"one").waiting(b"a")
    Foreign(raw, b"two").waiting(b"b")
    lines = (
        *("-q one ls -o ids", "ls -q one -o ids", "ls -qone -oids", "-o ids --queue one ls"),
        *("--queue=one ls --output=ids", "-q two ls -q one -o ids", "-o json ls -o ids -q one"),
    )
    results = {line: rwq(*line.split()).as_tuple() for line in lines}
    assert results == dict.fromkeys(lines, (0, "a\n", ""))
    lines = ("-q one clean light -o json", "clean -o json light -q one")
    assert [rwq(*line.split(), "--grace", "0").json["queue"] for line in lines] == ["one", "one"]


class TestPassword:
    def test_a_file_wins_over_the_variable_and_the_url(
        self, bare_rwq: Rwq, guarded: PrivateServer, tmp_path: Path
    ) -> None:
        file = tmp_path / "password"
        words = ("stats", "-q", "jobs", "--password-file", str(file))
        file.write_bytes(b"hunter2\r\nmore")
        both = {"RWQ_PASSWORD": "wrong", "RWQ_URL": guarded.url}
        in_url = {"RWQ_URL": f"unix://:wrong@{guarded.socket}"}
        assert [bare_rwq(*words, variables=names).code for names in (both, in_url)] == [0, 0]

    def test_a_line_end_is_no_part_of_a_variable(
        self, bare_rwq: Rwq, guarded: PrivateServer
    ) -> None:
        """As of a secret that was made by `echo`."""
        words = ("stats", "-q", "jobs", "-u", guarded.url)
        passwords = [{"RWQ_PASSWORD": f"hunter2{end}"} for end in ("\n", "\r\n")]
        assert [bare_rwq(*words, variables=password).code for password in passwords] == [0, 0]


@pytest.mark.parametrize("options", ["", "-v --debug", "-o json"])
@pytest.mark.parametrize(
    "url",
    [
        *("redis://:hunter2@127.0.0.1:1/0", "redis://127.0.0.1:1/0?password=hunter2"),
        *("redis://:hunter2#x@127.0.0.1:1/0", "ann:hunter2@host:6379", "redis://ops:hunter2"),
        *("redis://127.0.0.1:1/0?auth=hunter2", "redis://127.0.0.1:1,password=hunter2"),
        "127.0.0.1:hunter2",
    ],
)
def test_a_password_in_the_url_is_never_shown(bare_rwq: Rwq, url: str, options: str) -> None:
    result = bare_rwq("ls", "-q", "jobs", "-u", url, *options.split())
    assert result.code in (2, 69)
    assert b"hunter2" not in result.out + result.err
    # Of a URL that cannot be read, the scheme at most.
    assert b"***" in result.err or "…".encode() in result.err


class TestOutputVariable:
    """RWQ_OUTPUT is the default of -o."""

    def test_it_is_the_default(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"b")
        ids = {"RWQ_OUTPUT": "ids"}
        assert rwq("ls", variables=ids).text == "b\n"
        assert rwq.on_screen("ls", variables=ids)[1].startswith(b"b\n")
        assert rwq("ls", "-o", "csv", variables=ids).text.startswith("position,id,")
        # Not its idle time: that may be a second longer by then.
        results = [rwq("ls", "--fields", "id,data", variables=v) for v in ({"RWQ_OUTPUT": ""}, ids)]
        assert [result.text for result in results] == ["b\tdata of b\n"] * 2

    def test_errors_are_json_too(self, rwq: Rwq) -> None:
        result = rwq("nonsense", variables={"RWQ_OUTPUT": "json"})
        assert json.loads(result.notes)["code"] == "usage"
        plain = rwq("nonsense", "-o", "plain", variables={"RWQ_OUTPUT": "json"})
        assert plain.notes.startswith("rwq: error: ")


def test_timeouts_are_honoured(bare_rwq: Rwq, start_server: StartServer) -> None:
    server = start_server()
    server.process.send_signal(signal.SIGSTOP)
    url = ("-q", "jobs", "-u", server.url)
    said = f"rwq: error: {server.url} did not answer within 0.05 s; "
    assert bare_rwq("stats", *url, "--reply-timeout", "50ms").notes.startswith(said)
    url = ("-q", "jobs", "-u", f"unix://:x@{server.socket}")
    said = "it did not answer within 0.05 s"
    assert said in bare_rwq("stats", *url, "--connect-timeout", "50ms").notes
    # Where nothing is written, that of a wait holds, too.
    lines = (["result", "a"], ["wait"])
    notes = [bare_rwq(*line, *url, "--timeout", "100ms").notes for line in lines]
    seconds = [re.findall(r"did not answer within (0\.\d+) s", text)[:1] for text in notes]
    assert [[float(text) <= 0.4 for text in texts] for texts in seconds] == [[True], [True]], notes
