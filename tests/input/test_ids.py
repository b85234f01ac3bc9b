"""IDs from arguments and from stdin."""

import io
from collections.abc import Iterable

import pytest

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input.ids import read_ids


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
def test_ids_are_arguments_or_lines_of_stdin(
    arguments: list[str], stdin: bytes, null: bool, ids: list[bytes]
) -> None:
    assert flattened(read_ids(environment(stdin), arguments, null_separated=null)) == ids


@pytest.mark.parametrize("arguments", [[], [""], ["a", ""], ["a", "-"], ["-", "-"]])
def test_bad_ids_are_errors(arguments: list[str]) -> None:
    with pytest.raises(InvalidArgument):
        list(read_ids(environment(b"a\n"), arguments, null_separated=False))
