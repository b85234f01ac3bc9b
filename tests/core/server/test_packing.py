"""Commands as bytes, with hiredis and without."""

from enum import Enum
from typing import Any

import pytest

from rwq_cli.core.server import packing


@pytest.fixture(params=["hiredis", "python"])
def pack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "python":
        monkeypatch.setattr(packing, "_pack_in_c", None)
    else:
        pytest.importorskip("hiredis")
    return packing.pack


@pytest.mark.parametrize(
    ("command", "packed"),
    [
        (["PING"], b"*1\r\n$4\r\nPING\r\n"),
        (("SET", b"\xff\r\n", b""), b"*3\r\n$3\r\nSET\r\n$3\r\n\xff\r\n\r\n$0\r\n\r\n"),
        (
            ("LRANGE", "é", 0, -10),
            b"*4\r\n$6\r\nLRANGE\r\n$2\r\n\xc3\xa9\r\n$1\r\n0\r\n$3\r\n-10\r\n",
        ),
        (("ZADD", b"z", 0.25), b"*3\r\n$4\r\nZADD\r\n$1\r\nz\r\n$4\r\n0.25\r\n"),
        (("ZADD", b"z", 2**53), b"*3\r\n$4\r\nZADD\r\n$1\r\nz\r\n$16\r\n9007199254740992\r\n"),
    ],
)
def test_a_command_is_packed_in_the_protocol(pack: Any, command: Any, packed: bytes) -> None:
    assert pack(command) == packed


class _Bytes(bytes):
    pass


class _Word(str, Enum):  # noqa: UP042 - a StrEnum prints its value
    VALUE = "value"


@pytest.mark.parametrize("number", ["1", 1])
def test_subclasses_are_sent_as_what_they_are(pack: Any, number: object) -> None:
    assert pack((_Bytes(b"x"), number)) == b"*2\r\n$1\r\nx\r\n$1\r\n1\r\n"
    assert pack((_Word.VALUE, number)) == b"*2\r\n$5\r\nvalue\r\n$1\r\n1\r\n"


def test_text_that_is_not_utf_8_is_an_error(pack: Any) -> None:
    with pytest.raises(UnicodeEncodeError):
        pack(("GET", "\udcff"))


def test_hiredis_is_given_no_numbers(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the process if Ctrl-C comes while it formats one."""
    if packing._pack_in_c is not None:
        given: list[object] = []
        monkeypatch.setattr(packing, "_pack_in_c", given.extend)
        pack(("ZADD", b"z", 1, 0.25))
        assert given == ["ZADD", b"z", "1", "0.25"]
