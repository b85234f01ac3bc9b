"""Streams cut into records, and read whole."""

import io
from collections.abc import Iterable

import pytest

from rwq_cli.core.batches import Flush
from rwq_cli.input.streams import split, whole


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
def test_records_end_with_the_separator(text: bytes, records: list[bytes], chunk: int) -> None:
    class Dripping(io.BytesIO):
        def read1(self, _size: int | None = -1) -> bytes:
            return self.read(chunk)

    assert flattened(split(Dripping(text), b"\n", lambda: None)) == records


def test_a_stream_is_read_whole_up_to_the_limit() -> None:
    for longest in (4, 5):
        assert whole(io.BytesIO(b"a\n\0b"), lambda: None, bytes_max=longest) == b"a\n\0b"


def test_an_endless_stream_is_read_up_to_the_limit() -> None:
    with open("/dev/zero", "rb") as endless:
        for longest in (0, 3, 300_000):
            assert whole(endless, lambda: None, bytes_max=longest) == bytes(longest + 1)
