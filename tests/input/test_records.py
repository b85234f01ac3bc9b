"""Records with their IDs, in batches."""

import io

import pytest

from rwq_cli.core.batches import Flush
from rwq_cli.environment import Environment
from rwq_cli.input.records import IdRule, InputFormat, RecordReader


def environment(stdin: bytes) -> Environment:
    return Environment({}, io.BytesIO(stdin), io.BytesIO(), io.BytesIO())


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
    reported: list[object] = []
    world = environment(b"".join(line + b"\n" for line in lines))
    reader = RecordReader(
        world,
        InputFormat.JSONL,
        IdRule("uuid"),
        strict=False,
        report=lambda *bad: reported.append(bad),
    )
    items = [
        (b"" if len(item_id) == 32 else item_id, data)
        for batch in reader.from_files(["-"])
        if not isinstance(batch, Flush)
        for item_id, data in zip(batch.ids, batch.data, strict=True)
    ]
    assert reported == []
    return items


@pytest.mark.parametrize("line", JSON_LINES)
def test_a_json_line_is_read_alike_alone_and_among_others(line: bytes) -> None:
    (alone,) = records_of(line, b'{"data":"x","id":"own"}')[:1]
    plain = [b'{"data":"plain"}'] * 3
    assert records_of(line, *plain) == [alone, *[(b"", b"plain")] * 3]
    assert records_of(line) == [alone]


def test_a_broken_line_is_rejected_alone() -> None:
    reported: list[tuple[str, int, str]] = []
    # Joined by commas these three would be two objects.
    lines = b'{"data":["a"\n"b"]}\n{"data":"c"}\n'
    reader = RecordReader(
        environment(lines),
        InputFormat.JSONL,
        IdRule("uuid"),
        strict=False,
        report=lambda *bad: reported.append(bad),
    )
    batches = [batch for batch in reader.from_files(["-"]) if not isinstance(batch, Flush)]
    assert [data for batch in batches for data in batch.data] == [b"c"]
    assert [number for _, number, _ in reported] == [1, 2]
