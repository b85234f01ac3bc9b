"""`rwq add`: where items and IDs come from, how input is cut, what is put off, what is reported."""

import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.driver import COMMAND, Rwq
from tests.proxies import Line


def waiting_ids(raw: redis.Redis) -> list[bytes]:
    """The IDs of what waits, next first."""
    return raw.lrange("jobs:queue", 0, -1)[::-1]


def waiting_data(raw: redis.Redis) -> list[bytes]:
    """The data of what waits, next first."""
    return [raw.get(b"jobs:item:" + item_id) for item_id in waiting_ids(raw)]


def due_in_s(raw: redis.Redis) -> dict[str, int]:
    """The delayed items, in order, with whole seconds until each is due."""
    now_s = raw.time()[0]
    pairs = raw.zrange("jobs:delayed", 0, -1, withscores=True)
    return {item_id.decode(): round(score / 1000 - now_s) for item_id, score in pairs}


def near(seconds: int) -> range:
    """What `seconds` may have become since: the clock goes on."""
    return range(max(0, seconds - 60), seconds + 2)


@pytest.mark.parametrize(
    ("given", "items", "said"),
    [
        (b"", [], "nothing added"),
        (b"\n", [], "empty 1"),
        (b"a", [b"a"], "added 1"),
        (b"a\n\n\nb\n\n", [b"a", b"b"], "added 2, empty 3"),
        (b" a \n\t\n", [b" a ", b"\t"], "added 2"),
        (b"a\0b\nc", [b"a\0b", b"c"], "added 2"),
    ],
)
def test_each_line_is_an_item(
    rwq: Rwq, raw: redis.Redis, given: bytes, items: list[bytes], said: str
) -> None:
    assert rwq("add", stdin=given).as_tuple() == (0, "", f"{said}\n")
    assert waiting_data(raw) == items


@pytest.mark.parametrize(
    ("form", "items"),
    [("lines", [b"1", b"\xff\0", b"x", b"y"]), ("raw", [b"1\n\xff\0", b"x\ny", b""])],
)
def test_files_and_stdin_are_read_in_order(
    rwq: Rwq, raw: redis.Redis, tmp_path: Path, form: str, items: list[bytes]
) -> None:
    (tmp_path / "one").write_bytes(b"1\n\xff\0")
    (tmp_path / "two").write_bytes(b"")
    words = ("add", "-f", str(tmp_path / "one"), "--file", "-", "-f", str(tmp_path / "two"))
    assert rwq(*words, "--format", form, stdin=b"x\ny").code == 0
    assert waiting_data(raw) == items


def test_a_bad_line_is_reported_with_its_file(rwq: Rwq, raw: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "items"
    file.write_bytes(b'{"data": 1}\n\nx\n')
    result = rwq("add", "--format", "jsonl", "-f", str(file))
    bad, summary = result.notes.splitlines()
    assert bad.startswith(f"rwq: {file}, line 3: not JSON: ")
    assert bad.endswith("; not added")
    assert summary == "added 1, rejected 1, empty 1"
    assert (result.code, result.text) == (3, "")
    assert raw.llen("jobs:queue") == 1
    result = rwq("add", "--format", "jsonl", "-o", "json", stdin=b'x\n{"data": 1}\n')
    (record,) = [json.loads(line) for line in result.err.splitlines()]
    assert (record["code"], record["record"], record["error"][:9]) == (
        "bad-record",
        1,
        "not JSON:",
    )
    assert (result.code, result.json["added"], result.json["rejected"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("line", "item_id", "data"),
    [
        (b'{"data": "text"}', None, b"text"),
        (b'{"data": "caf\\u00e9\\u0000"}', None, "café\0".encode()),
        (b'{"data": 1.50}', None, b"1.50"),
        (b'{"data": [1.0e5, 0.10000000000000000555]}', None, b"[1.0e5,0.10000000000000000555]"),
        (b'{"data": null}', None, b"null"),
        (b'{"data": {"b": [1, "\xc3\xa9"], "a": null}}', None, '{"b":[1,"é"],"a":null}'.encode()),
        (b'{"data": 12345678901234567890}', None, b"12345678901234567890"),
        (b'{"data_b64": "//4=", "id": "a"}', b"a", b"\xff\xfe"),
        (b'{"data": null, "data_b64": "YQ==", "id": 42}', b"42", b"a"),
        (b'{"data": "x", "data_b64": null, "id_b64": "/w=="}', b"\xff", b"x"),
        (b'  {"data": "x", "delay": null, "id": null}  ', None, b"x"),
    ],
)
def test_json_lines_take_text_base64_or_json(
    rwq: Rwq, raw: redis.Redis, line: bytes, item_id: bytes | None, data: bytes
) -> None:
    assert rwq("add", "--format", "jsonl", "--binary-ids", stdin=line + b"\n").code == 0
    assert waiting_data(raw) == [data]
    assert item_id is None or waiting_ids(raw) == [item_id]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"data": "x", "Delay": "5m"}', "it has a field `Delay`, and only data, "),
        (b'{"data": "x", "data": "y"}', "it has data twice"),
        (b'{"id": "a", "data": {"data": 1, "id": 2, "id": 3}, "id": "b"}', "it has id twice"),
    ],
)
def test_an_unknown_or_repeated_field_is_an_error(
    rwq: Rwq, raw: redis.Redis, line: bytes, reason: str
) -> None:
    good = b'{"data": {"data": 1, "data": 2, "other": 3}}'
    result = rwq("add", "--format", "jsonl", stdin=b"\n".join((good, line, b"")))
    assert (result.code, result.notes.splitlines()[0].partition(reason)[1]) == (3, reason)
    assert len(waiting_data(raw)) == 1


@pytest.mark.parametrize(
    ("at", "note"),
    [
        ("2020-01-01T00:00", "rwq: note: --at 2020-01-01T00:00 was "),
        ("@1700000000", "rwq: note: --at @1700000000 was "),
        ("2127-03-30T02:30", "rwq: note: --at 2127-03-30T02:30 does not exist on that day here: "),
        ("2127-03-30T03:30", None),
        ("2127-03-30T02:30Z", None),
        ("23:59", None),
    ],
)
def test_a_time_that_may_be_a_mistake_is_noted(
    rwq: Rwq, set_zone: Callable[[str], None], at: str, note: str | None
) -> None:
    # Clocks go forward on the last Sunday of March.
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3")
    result = rwq("add", "--at", at, "x")
    assert result.code == 0
    assert (note is None) or result.notes.startswith(note)
    assert (note is None) is not result.notes.startswith("rwq: note")


@pytest.mark.parametrize("name", ["jobs\n", " jobs", '"jobs"', "'jobs'", "jobs\t"])
def test_odd_ends_of_a_new_queues_name_are_refused(rwq: Rwq, raw: redis.Redis, name: str) -> None:
    """As it comes from a Secret or a file; to look at such a queue is possible."""
    rwq.variables["RWQ_QUEUE"] = name
    result = rwq("add", "x")
    assert (result.code, raw.keys()) == (2, [])
    assert "begins or ends with white space or a quote" in result.notes
    raw.lpush(f"{name}:queue", "a")
    result = rwq("ls", "-o", "ids")
    assert (result.code, result.text) == (0, "a\n")
    assert result.notes.startswith(
        "rwq: note: the queue's name begins or ends with white space or a quote: "
    )


class TestIds:
    def test_a_random_one_is_a_uuid_of_version_4(self, rwq: Rwq) -> None:
        ids = rwq("add", "-o", "ids", *map(str, range(40))).text.split()
        assert {(uuid.UUID(item_id).version, uuid.UUID(item_id).variant) for item_id in ids} == {
            (4, uuid.RFC_4122)
        }
        assert len(set(ids)) == 40

    def test_the_id_is_the_digest_of_the_data(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--id-from", "sha256", stdin=b"a\nb\na\n")
        assert result.notes == "added 2, duplicates 1\n"
        digests = [hashlib.sha256(data).hexdigest().encode() for data in (b"a", b"b")]
        assert waiting_ids(raw) == digests

    def test_the_id_is_the_line(self, rwq: Rwq, raw: redis.Redis) -> None:
        rwq("add", "--id-from", "line", stdin="é\nb c\n".encode())
        assert waiting_ids(raw) == ["é".encode(), b"b c"]
        result = rwq("add", "--id-from", "line", "a", "")
        said = "rwq: argument 2: empty data cannot be its own ID; not added\nadded 1, rejected 1\n"
        assert result.as_tuple() == (3, "", said)

    def test_one_that_is_not_utf_8_is_refused(self, rwq: Rwq, raw: redis.Redis) -> None:
        said = "its ID is not UTF-8, and workers and cleaners of other languages would fail on it; "
        result = rwq("add", "--id-from", "line", stdin=b"a\n\xff\n")
        assert (result.code, waiting_ids(raw)) == (3, [b"a"])
        notes = f"rwq: line 2: {said}--binary-ids adds it; not added\nadded 1, rejected 1\n"
        assert result.notes == notes
        result = rwq("add", "--id", "\udcff", "x")
        assert result.as_tuple() == (2, "", f"rwq: error: {said}--binary-ids adds it\n")
        assert rwq("add", "--id", "\udcff", "x", "--binary-ids").code == 0
        assert rwq("add", "--id-from", "line", "--binary-ids", stdin=b"\xfe").code == 0
        assert waiting_ids(raw) == [b"a", b"\xff", b"\xfe"]
        exported = rwq("export").out
        said = "note: 2 of the IDs are not UTF-8: "
        assert said in rwq("import", "-q", "copy", "-", stdin=exported).notes
        (finding,) = rwq("doctor", "-o", "json", "--only", "binary-id").json
        assert (finding["count"], rwq("doctor", "--only", "binary-id").code) == (2, 1)

    def test_the_id_is_a_field(self, rwq: Rwq, raw: redis.Redis) -> None:
        given = (
            *(b'{"user": "ann"}', b'{"user": 42}', b'{"user": false}', b'{"user": {"b": 1}}'),
            *(b"x", b"[]", b"{}", b'{"user": null}', b'{"user": ""}', b"\xff"),
        )
        result = rwq("add", "--id-from", "field:user", stdin=b"\n".join(given))
        reasons = re.findall(r"(?m)^rwq: line (\d+): its data .*no field 'user'", result.notes)
        assert reasons == ["5", "6", "7", "8", "9", "10"]
        assert waiting_ids(raw) == [b"ann", b"42", b"false", b'{"b":1}']
        assert waiting_data(raw) == list(given[:4])
        assert (result.code, result.notes.splitlines()[6:]) == (3, ["added 4, rejected 6"])

    @pytest.mark.parametrize("stdin", [b"data", b"data\n", b"\ndata\n"])
    def test_one_id_for_one_record_of_stdin(self, rwq: Rwq, raw: redis.Redis, stdin: bytes) -> None:
        assert rwq("add", "--id", "a", stdin=stdin).code == 0
        assert raw.get("jobs:item:a") == b"data"


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("side", ["up", "down"])
def test_it_goes_on_after_a_lost_server(rwq: Rwq, raw: redis.Redis, side: str) -> None:
    ids = [b"%05d" % number for number in range(5000)]
    words = ("add", "--id-from", "line", "-o", "jsonl")
    with Line() as whole:
        rwq(*words, stdin=b"\n".join(ids))
    raw.flushall()
    with Line(side, whole.passed[side] // 2):
        result = rwq(*words, "--reconnect", "1m", stdin=b"\n".join(ids))
    assert (result.code, len(result.notes.splitlines())) == (0, 2)
    assert "; trying again for 1m\n" in result.notes
    assert sorted(raw.lrange("jobs:queue", 0, -1)) == ids
    # What it may have added is a duplicate, and no line comes twice.
    told = [each["id"] for each in result.jsonl]
    assert len(told) == len(set(told))


def test_a_lines_delay_overrides_the_options(rwq: Rwq, raw: redis.Redis) -> None:
    delays = {"2.5e2": 250, '"1h30m"': 5400, "0": None, '"0s"': None, "null": 60}
    given = "".join(
        f'{{"data": 1, "id": "{number}", "delay": {delay}}}\n'
        for number, delay in enumerate(delays)
    )
    result = rwq(
        *("add", "--format", "jsonl", "--delay", "1m", "-o", "ids"),
        stdin=given.encode() + b'{"data": 1, "id": "x", "delay": "x"}\n',
    )
    bad = "rwq: line 6: its delay is not a duration: 'x'; not added\nadded 5, rejected 1\n"
    assert result.as_tuple() == (3, "0\n1\n2\n3\n4\n", bad)
    seconds = {str(at): value for at, value in enumerate(delays.values()) if value is not None}
    due = due_in_s(raw)
    assert (due.keys(), waiting_ids(raw)) == (seconds.keys(), [b"2", b"3"])
    assert {at: due[at] for at, value in seconds.items() if due[at] not in near(value)} == {}


@pytest.mark.ci
def test_memory_does_not_grow_with_the_input(rwq: Rwq, raw: redis.Redis) -> None:
    """Ten times the lines take no more memory; a --dry-run would keep the IDs, so it is real."""

    def peak_kib(lines: int) -> int:
        # A child of its own, so that the peak is that of one run.
        script = (
            "import resource, subprocess, sys;"
            "subprocess.run(sys.argv[1:], check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        source = subprocess.Popen(
            ["sh", "-c", f"yes 'some data of a usual length, such as this' | head -n {lines}"],
            stdout=subprocess.PIPE,
        )
        done = subprocess.run(
            [sys.executable, "-c", script, *COMMAND, "add"],
            stdin=source.stdout,
            env={**rwq.variables},
            cwd=rwq.home,
            capture_output=True,
            check=True,
        )
        source.wait()
        return int(done.stdout)

    small, large = peak_kib(20_000), peak_kib(200_000)
    assert raw.llen("jobs:queue") == 220_000
    assert large < small + 8 * 1024


@pytest.mark.parametrize("words", ["", "--id-from line", "--format jsonl", "--delay 1h"])
def test_many_lines_are_few_calls(rwq: Rwq, raw: redis.Redis, words: str) -> None:
    rwq("add", "first")
    raw.config_resetstat()
    lines = "".join(f"{number}\n" for number in range(1000))
    text = "".join(f'{{"data": {line}}}\n' for line in lines.split()) if "jsonl" in words else lines
    assert rwq("add", *words.split(), stdin=text.encode()).code == 0
    calls = raw.info("commandstats")
    assert sum(calls[name]["calls"] for name in calls if "eval" in name or "mset" in name) < 20
