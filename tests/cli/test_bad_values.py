"""Malformed URLs, durations, numbers and JSON lines: exit 2, or a line number; nothing changed."""

import json

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "redis:localhost",
        "redis:/localhost",
        "redis://localhost:port",
        "redis://localhost:99999",
        "redis://localhost:-1",
        "redis://localhost/zero",
        "redis://localhost/0/1",
        "redis://localhost/-1",
        "redis://[::1",
        "redis://localhost?db=x",
        "redis://localhost?nothing=1",
        "redis://localhost?socket_timeout=soon",
        "unix://",
        "unix:socket",
        "unix:///s?db=x",
        "://",
        "-",
        " ",
        "local",
    ],
)
def test_a_malformed_url_is_a_usage_error(bare_rwq: Rwq, url: str) -> None:
    result = bare_rwq("ls", "-q", "jobs", f"--url={url}")
    assert (result.code, result.text) == (2, "")
    assert result.notes.startswith("rwq: error: ")
    assert result.notes.count("\n") == 1
    assert "this is a bug" not in result.notes


@pytest.mark.parametrize(
    "url",
    [
        "redis://ops:hunter2",
        "redis://127.0.0.1:1/0?auth=hunter2",
        "redis://127.0.0.1:1,password=hunter2",
        "127.0.0.1:hunter2",
    ],
)
def test_no_secret_of_a_malformed_url_is_printed(bare_rwq: Rwq, url: str) -> None:
    result = bare_rwq("-v", "--debug", "stats", "-q", "jobs", "-u", url)
    assert (result.code, result.text) == (2, "")
    assert "hunter2" not in result.notes


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("redis+sentinel://127.0.0.1:1,127.0.0.1:2/service/0", "any Sentinel of "),
        ("redis+cluster://127.0.0.1:1,127.0.0.1:2", ""),
    ],
)
def test_no_host_of_a_list_answers(bare_rwq: Rwq, url: str, what: str) -> None:
    result = bare_rwq("ls", "-q", "{jobs}", "-u", url)
    assert result.as_tuple() == (
        69,
        "",
        f"rwq: error: cannot reach {what}{url}: connection refused; "
        "check -u or RWQ_URL, and that the server runs\n",
    )


@pytest.mark.parametrize(
    "line",
    ["lease --for", "lease --timeout", "touch a --for", "clean light --grace", "add x --delay"],
)
def test_a_malformed_duration_is_a_usage_error(rwq: Rwq, foreign: Foreign, line: str) -> None:
    foreign.waiting(b"a")
    *words, option = line.split()
    for text in ("", "-5m"):
        assert rwq(*words, f"{option}={text}").as_tuple() == (
            2,
            "",
            f"rwq: error: not a duration: {text!r}; write it like 500ms, 30s, 5m, 1h30m or 2d\n",
        )
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]
    assert foreign.raw.dbsize() == 2


@pytest.mark.parametrize("text", ["9" * 20, "9" * 400])
@pytest.mark.parametrize("line", ["lease --for", "touch l --for", "ls --older-than"])
def test_an_enormous_duration_changes_nothing(
    rwq: Rwq, foreign: Foreign, line: str, text: str
) -> None:
    """Longer than a server can count: refused before anything is done, or understood."""
    foreign.waiting(b"a")
    foreign.leased(b"l")
    result = rwq(*line.split(), text)
    assert "this is a bug" not in result.notes
    if line.startswith("ls"):
        assert result.as_tuple() == (0, "", "")
    else:
        assert (result.code, result.text) == (2, "")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]
    assert foreign.raw.lrange("jobs:processing", 0, -1) == [b"l"]
    assert foreign.raw.pttl("jobs:lease:l") <= 60_000


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "", "1e3"])
@pytest.mark.parametrize("line", ["lease -n", "ls -n", "ls --offset", "leases -n"])
def test_a_malformed_number_is_a_usage_error(
    rwq: Rwq, foreign: Foreign, line: str, number: str
) -> None:
    foreign.waiting(b"a")
    result = rwq(*line.split(), number)
    assert (result.code, result.text) == (2, "")
    name, least = line.split()[1], 1 if line == "lease -n" else 0
    assert result.notes == (
        f"rwq: error: {name} cannot be {number!r}; it must be a whole number of at least {least}\n"
    )
    assert result.notes.count("\n") == 1
    assert foreign.raw.llen("jobs:queue") == 1


@pytest.mark.parametrize("number", ["9223372036854775807", "99999999999999999999"])
@pytest.mark.parametrize(
    ("line", "out"),
    [("lease -o ids -n", "a\n"), ("ls -o ids -n", "a\n"), ("ls -o ids --offset", "")],
)
def test_an_enormous_number_is_refused_or_means_all(
    rwq: Rwq, foreign: Foreign, line: str, out: str, number: str
) -> None:
    """Either refused, or as good as all."""
    foreign.waiting(b"a")
    result = rwq(*line.split(), number)
    assert "this is a bug" not in result.notes
    assert (result.code, result.text) in ((2, ""), (0, out))


def test_a_rejected_line_is_reported_in_json(rwq: Rwq) -> None:
    result = rwq("add", "--format", "jsonl", "-o", "json", stdin=b'x\n{"data": 1}\n')
    assert result.code == 3
    (record,) = [json.loads(line) for line in result.err.splitlines()]
    assert record["code"] == "bad-record"
    assert record["record"] == 1
    assert record["error"].startswith("not JSON: ")
    assert (result.json["added"], result.json["rejected"]) == (1, 1)


@pytest.mark.parametrize("regex", ["[", "(", "*", "\\"])
def test_a_malformed_regex_is_a_usage_error(rwq: Rwq, regex: str) -> None:
    result = rwq("ls", "--match", regex)
    assert (result.code, result.text) == (2, "")
    assert result.notes.startswith("rwq: error: --match is not a regular expression: ")
