"""Streams cut into records and IDs, or read whole; text from other systems; JSON lines."""

import io
from collections.abc import Iterable

import pytest

from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input import streams
from rwq_cli.input.records import InputFormat, RecordReader, random_id
from rwq_cli.input.streams import Pace, read_ids, split, whole


def environment(stdin: bytes = b"") -> Environment:
    return Environment({}, io.BytesIO(stdin), io.BytesIO(), io.BytesIO())


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


class Dripping(io.BytesIO):
    """Gives at most so many bytes a read."""

    chunk = 1

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(self.chunk, size or 0))


@pytest.mark.parametrize(
    ("text", "records"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"\n", [b""]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb", [b"a\r", b"b"]),
        (b"\0\xff\n", [b"\0\xff"]),
        (b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbe\n\xef\xbb\xbfa", [b"\xef\xbb\xbe", b"\xef\xbb\xbfa"]),
        (b"\xff\xfe\n", [b"\xff\xfe"]),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 18])
def test_records_end_with_the_separator(text: bytes, records: list[bytes], chunk: int) -> None:
    stream = Dripping(text)
    stream.chunk = chunk
    assert flattened(split(environment(), stream, b"\n")) == records


def test_a_mark_is_data_where_there_is_no_text() -> None:
    stream = io.BytesIO(b"\xef\xbb\xbfa\0b\0")
    found = flattened(split(environment(), stream, b"\0", is_text=False))
    assert found == [b"\xef\xbb\xbfa", b"b"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_text_marked_as_another_encoding_is_named(encoding: str) -> None:
    text, name = "\ufeff日本\n", encoding.upper()[:6]
    with pytest.raises(InvalidArgument, match=f"stdin is {name}, not UTF-8") as caught:
        flattened(split(environment(), io.BytesIO(text.encode(encoding)), b"\n"))
    assert caught.value.hint == f"convert it: iconv -f {name} -t UTF-8"


@pytest.mark.parametrize(
    "data", [b"\1\0\2\0", b"\0\0\0\1", b"a\0\0b", b"\xff\xfe\xff", b"a\0", b"a\0b\0c\0"]
)
def test_binary_lines_are_data(data: bytes) -> None:
    assert flattened(split(environment(), io.BytesIO(data + b"\n"), b"\n")) == [data]


def test_lines_that_end_in_cr_lf_are_noted_once() -> None:
    world = environment()
    records = flattened(split(world, Dripping(b"a\r\nb\r\n\r\n"), b"\n"))
    assert records == [b"a\r", b"b\r", b"\r"]
    assert isinstance(world.stderr, io.BytesIO)
    notes = world.stderr.getvalue().decode()
    assert notes.count("\n") == 1
    assert "tr -d '\\r' removes it" in notes
    quiet = environment()
    assert flattened(split(quiet, io.BytesIO(b"{}\r\n"), b"\n", is_json=True)) == [b"{}\r"]
    assert isinstance(quiet.stderr, io.BytesIO)
    assert quiet.stderr.getvalue() == b""


@pytest.mark.parametrize("longest", [0, 4, 300_000])
def test_a_stream_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch, longest: int) -> None:
    monkeypatch.setattr(streams, "ITEM_BYTES_MAX", longest)
    with open("/dev/zero", "rb") as endless:
        assert whole(environment(), endless) == bytes(longest + 1)
    data = b"a\n\0b"[:longest]
    assert whole(environment(), io.BytesIO(data)) == data


@pytest.mark.parametrize(
    ("arguments", "stdin", "null", "ids"),
    [
        (["a", "b"], b"c\n", False, [b"a", b"b"]),
        (["-"], b"\xef\xbb\xbfa\n\nb c\nd", False, [b"a", b"b c", b"d"]),
        (["-"], b"a\nb\0\0c", True, [b"a\nb", b"c"]),
        (["-"], b"\xef\xbb\xbfa\0b\0", True, [b"a", b"b"]),
        (["-"], b"", False, []),
        (["\udcff"], b"", False, [b"\xff"]),
        (["--"], b"", False, [b"--"]),
    ],
)
def test_ids_are_arguments_or_lines_of_stdin(
    arguments: list[str], stdin: bytes, null: bool, ids: list[bytes]
) -> None:
    assert flattened(read_ids(environment(stdin), arguments, null_separated=null)) == ids


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


def records_of(*lines: bytes) -> tuple[list[tuple[bytes, bytes]], list[int]]:
    """IDs and data of lines that go in together, a random ID as empty; the lines rejected."""
    reported: list[int] = []
    reader = RecordReader(
        environment(b"".join(line + b"\n" for line in lines)),
        InputFormat.JSONL,
        random_id,
        strict=False,
        report=lambda _source, number, _reason: reported.append(number),
    )
    items = [
        (b"" if len(item_id) == 32 else item_id, data)
        for batch in reader.from_files(["-"])
        if not isinstance(batch, Flush)
        for item_id, data in zip(batch.ids, batch.data, strict=True)
    ]
    return items, reported


@pytest.mark.parametrize("line", JSON_LINES)
def test_a_json_line_is_read_alike_alone_or_not(line: bytes) -> None:
    alone = records_of(line, b'{"data":"x","id":"own"}')[0][0]
    plain = [b'{"data":"plain"}'] * 3
    assert records_of(line, *plain) == ([alone, *[(b"", b"plain")] * 3], [])
    assert records_of(line) == ([alone], [])


def test_a_broken_line_is_rejected_alone() -> None:
    # Joined by commas these three would be two objects.
    assert records_of(b'{"data":["a"', b'"b"]}', b'{"data":"c"}') == ([(b"", b"c")], [1, 2])


def test_a_pace_makes_up_for_a_second_at_most() -> None:
    now_s, pauses = 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        pauses.append(seconds)

    pace = Pace(2, lambda: now_s, sleep)
    assert list(pace.slow([b"a", b"b"])) == [b"a", FLUSH, b"b"]
    now_s += 60
    assert list(pace.slow([b"c", FLUSH, b"d", b"e", b"f"])) == [
        *(b"c", FLUSH, b"d", b"e", FLUSH, b"f")
    ]
    assert pauses == [0.5, 0.5]
