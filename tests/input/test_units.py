"""The small parts of reading: durations, times, streams cut into records, IDs."""

import io
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pytest

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input.durations import parse_duration
from rwq_cli.input.ids import read_ids
from rwq_cli.input.records import IdRule, InputFormat, RecordReader, random_ids
from rwq_cli.input.streams import split, whole
from rwq_cli.input.times import parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("5", 5),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1d2h3m4s5ms", 93_784.005),
        (" 5m ", 300),
        ("1.5h", 5400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "s",
        "5x",
        "-5",
        "+5",
        "5 5",
        "1h-1m",
        "1e3",
        "inf",
        "nan",
        ".5",
        "5.",
        "1_000",
        "5M",
        "٣s",
        "1h 30m",
    ],
)
def test_not_durations(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_duration(text)
    assert caught.value.message == f"not a duration: {text!r}"
    assert caught.value.hint == "it looks like 500ms, 30s, 5m, 1h30m or 2d"


def flattened(pieces: Iterable[object]) -> list[bytes]:
    """The records, whether they come one by one or in lists."""
    records: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            records.append(piece)
        elif isinstance(piece, list):
            records += piece
        else:
            assert isinstance(piece, Flush)
    return records


@pytest.mark.parametrize(
    ("text", "records"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"\n", [b""]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\n\n", [b"a", b""]),
        (b"a\r\nb", [b"a\r", b"b"]),
        (b"\0\xff\n", [b"\0\xff"]),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 18])
def test_split(text: bytes, records: list[bytes], chunk: int) -> None:
    class Dripping(io.BytesIO):
        def read1(self, _size: int | None = -1) -> bytes:
            return self.read(chunk)

    assert flattened(split(Dripping(text), b"\n", lambda: None)) == records


def test_whole() -> None:
    for longest in (4, 5):
        assert whole(io.BytesIO(b"a\n\0b"), lambda: None, bytes_max=longest) == b"a\n\0b"


def test_a_whole_stream_that_has_no_end() -> None:
    with open("/dev/zero", "rb") as endless:
        for longest in (0, 3, 300_000):
            assert whole(endless, lambda: None, bytes_max=longest) == bytes(longest + 1)


def environment(stdin: bytes) -> Environment:
    return Environment({}, io.BytesIO(stdin), io.BytesIO(), io.BytesIO())


@pytest.mark.parametrize(
    ("arguments", "stdin", "null", "ids"),
    [
        (["a", "b"], b"c\n", False, [b"a", b"b"]),
        (["-"], b"a\n\nb c\nd", False, [b"a", b"b c", b"d"]),
        (["-"], b"a\nb\0\0c", True, [b"a\nb", b"c"]),
        (["-"], b"", False, []),
        (["\udcff"], b"", False, [b"\xff"]),
        (["--"], b"", False, [b"--"]),
    ],
)
def test_ids(arguments: list[str], stdin: bytes, null: bool, ids: list[bytes]) -> None:
    assert flattened(read_ids(environment(stdin), arguments, null_separated=null)) == ids


@pytest.mark.parametrize("arguments", [[], [""], ["a", ""], ["a", "-"], ["-", "-"]])
def test_not_ids(arguments: list[str]) -> None:
    with pytest.raises(InvalidArgument):
        list(read_ids(environment(b"a\n"), arguments, null_separated=False))


@pytest.mark.parametrize("text", ["uuid", "sha256", "line"])
def test_id_rules(text: str) -> None:
    assert IdRule.parse(text) == IdRule(text)


def test_the_field_of_an_id_rule_may_hold_a_colon() -> None:
    assert IdRule.parse("field:a:b") == IdRule("field", "a:b")


def test_random_ids_are_all_different() -> None:
    assert len(set(random_ids(5000))) == 5000


# Each is read with its like in one go if nothing is special about it, and by itself if not.
JSON_LINES = (
    b'{"data":"text"}',
    b'{"data": {"n": [1, 2.50, 1e3, null]}}',
    b'{"data":""}',
    b'{"data":"\\u00fc\\ud83d\\ude00"}',
    b'{"data":12345678901234567890123}',
    b'{"data":"12345678901234567890123"}',
    b'{"data":"x","id":"own"}',
    b'{"data_b64":"AP8="}',
    b'{"data":[true]}',
    b'{"data":' + b"[" * 253 + b"]" * 253 + b"}",
    b'{"data":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"data":' + b"[" * 300 + b"1234567890123456789012" + b"]" * 300 + b"}",
)


def records_of(*lines: bytes) -> list[tuple[bytes, bytes]]:
    """IDs and data of lines that go in together; a random ID is shown as empty."""
    told: list[object] = []
    world = environment(b"".join(line + b"\n" for line in lines))
    reader = RecordReader(
        world, InputFormat.JSONL, IdRule("uuid"), False, lambda *bad: told.append(bad)
    )
    items = [
        (b"" if len(item_id) == 32 else item_id, data)
        for batch in reader.from_files(["-"])
        if not isinstance(batch, Flush)
        for item_id, data in zip(batch.ids, batch.data, strict=True)
    ]
    assert told == []
    return items


@pytest.mark.parametrize("line", JSON_LINES)
def test_a_json_line_means_the_same_alone_and_among_others(line: bytes) -> None:
    (alone,) = records_of(line, b'{"data":"x","id":"own"}')[:1]
    plain = [b'{"data":"plain"}'] * 3
    assert records_of(line, *plain) == [alone, *[(b"", b"plain")] * 3]
    assert records_of(line) == [alone]


def test_a_broken_line_among_plain_ones_is_the_only_one_rejected() -> None:
    told: list[tuple[str, int, str]] = []
    # Joined by commas these three would be two objects.
    lines = b'{"data":["a"\n"b"]}\n{"data":"c"}\n'
    reader = RecordReader(
        environment(lines),
        InputFormat.JSONL,
        IdRule("uuid"),
        False,
        lambda *bad: told.append(bad),
    )
    batches = [batch for batch in reader.from_files(["-"]) if not isinstance(batch, Flush)]
    assert [data for batch in batches for data in batch.data] == [b"c"]
    assert [number for _, number, _ in told] == [1, 2]


def test_the_bytes_of_ids_count_too() -> None:
    """A batch that is full by bytes ends, whether they are of IDs or of data."""
    line = b"x" * 600_000
    reader = RecordReader(
        environment((line + b"\n") * 10),
        InputFormat.LINES,
        IdRule("line"),
        False,
        lambda *_bad: None,
    )
    batches = [batch for batch in reader.from_files(["-"]) if not isinstance(batch, Flush)]
    assert [len(batch.ids) for batch in batches] == [4, 4, 2]


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone that changes its clocks: at 01:00 UTC on 29 March and on 25 October 2026."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def in_utc(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(" ", "milliseconds")[5:-6]


@pytest.mark.usefixtures("in_berlin")
class TestTimes:
    @pytest.mark.parametrize(
        ("text", "utc"),
        [
            ("@1795334400", "11-22 08:00:00.000"),
            ("@1795334400.5", "11-22 08:00:00.500"),
            ("@1795334400.001999999", "11-22 08:00:00.001"),
            ("2026-11-22T08:00Z", "11-22 08:00:00.000"),
            ("2026-11-22T08:00", "11-22 07:00:00.000"),
            ("2026-07-01 08:00", "07-01 06:00:00.000"),
            ("2026-11-22T08:00:07.25", "11-22 07:00:07.250"),
            ("2026-11-22T08:00:07+01:00", "11-22 07:00:07.000"),
            ("2026-11-22T08:00-0330", "11-22 11:30:00.000"),
            ("2026-11-22T08:00+14", "11-21 18:00:00.000"),
            (" 2026-11-22T08:00Z ", "11-22 08:00:00.000"),
            # An hour that is left out that night, and one that comes twice: the first of them.
            ("2026-03-29T02:30", "03-29 01:30:00.000"),
            ("2026-10-25T02:30", "10-25 00:30:00.000"),
        ],
    )
    def test_that_need_no_clock(self, text: str, utc: str) -> None:
        def now_ms() -> int:
            raise AssertionError("asked")

        assert in_utc(parse_time(text, now_ms)) == utc

    @pytest.mark.parametrize(
        ("now", "text", "utc"),
        [
            ("2026-11-21T18:00Z", "08:00", "11-22 07:00:00.000"),
            ("2026-11-21T18:00Z", "20:00", "11-21 19:00:00.000"),
            ("2026-11-21T18:00Z", "19:00:00.001", "11-21 18:00:00.001"),
            ("2026-11-21T18:00Z", "19:00", "11-22 18:00:00.000"),
            ("2026-11-21T23:30Z", "00:15", "11-22 23:15:00.000"),
            ("2026-11-21T22:30Z", "00:15", "11-21 23:15:00.000"),
            ("2026-12-31T22:59:59Z", "00:00", "12-31 23:00:00.000"),
            # The night before, within and after the hour that comes twice.
            ("2026-10-24T18:00Z", "02:30", "10-25 00:30:00.000"),
            ("2026-10-25T00:45Z", "02:30", "10-25 01:30:00.000"),
            ("2026-10-25T01:45Z", "02:30", "10-26 01:30:00.000"),
            ("2026-10-25T01:45Z", "02:50", "10-25 01:50:00.000"),
            ("2026-10-24T18:00Z", "08:00", "10-25 07:00:00.000"),
            ("2026-03-28T18:00Z", "08:00", "03-29 06:00:00.000"),
            ("2026-03-28T18:00Z", "02:30", "03-29 01:30:00.000"),
            # In a zone of its own, where it may be another day than here.
            ("2026-11-21T18:00Z", "08:00Z", "11-22 08:00:00.000"),
            ("2026-11-21T18:00Z", "18:00:00.001Z", "11-21 18:00:00.001"),
            ("2026-11-21T18:00Z", "18:00Z", "11-22 18:00:00.000"),
            ("2026-11-21T23:30Z", "23:45Z", "11-21 23:45:00.000"),
            ("2026-11-21T18:00Z", "08:00+14", "11-22 18:00:00.000"),
            ("2026-11-21T18:00Z", "08:00+13:30", "11-21 18:30:00.000"),
            ("2026-11-21T18:00Z", "14:31-0330", "11-21 18:01:00.000"),
            # Its clocks are not put back.
            ("2026-10-25T00:45Z", "02:30+02:00", "10-26 00:30:00.000"),
        ],
    )
    def test_of_the_day_that_is_next(self, now: str, text: str, utc: str) -> None:
        now_ms = parse_time(now, lambda: 0)
        assert in_utc(parse_time(text, lambda: now_ms)) == utc
