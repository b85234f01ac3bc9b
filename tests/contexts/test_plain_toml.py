"""The quick reading of config.toml: either as tomllib reads it, or not at all."""

import tomllib

import pytest
from hypothesis import given, strategies as st

from rwq_cli.contexts.plain_toml import parse_plain

WRITTEN = """\
current = "prod"
# where the money is
[contexts.prod]
url = "rediss://ops@db1:6380/0?a=b#c"
read_only = true

  [contexts.dev-2]
url="local:"
queue = "жобс"
"""
PIECES = st.sampled_from(
    [*"[]=\"'\\#. \t\n\r\x0b\x85\u2028abc_-{},1", "[contexts.a]", "a = ", '"x"', "true", "\r\n"]
)


def test_what_rwq_writes_is_read() -> None:
    assert parse_plain(WRITTEN) == tomllib.loads(WRITTEN)
    assert parse_plain("") == {}


@pytest.mark.parametrize(
    "text",
    [
        *('a = "x\\n"', "a = 'x'", "a = 1", 'a = """x"""', "a.b = true", "[a]", '[a."b.c"]'),
        *(
            "a = true\na = true",
            "[a.b]\n[a.b]",
            "a = true\n[a.b]",
            'a = "x" # y',
            "a",
            "a =",
            "= 1",
        ),
        *(
            'a = "',
            'a = "x" "y"',
            "[a.b",
            "[a.b] x",
            "[[a.b]]",
            "[a.b.c]",
            "a = true\r\n",
            "a = True",
        ),
        *("\x00", "# \x1b", 'a = "\x85"', '"a" = true'),
    ],
)
def test_anything_else_is_left_to_tomllib(text: str) -> None:
    assert parse_plain(text) is None


@given(
    st.lists(st.tuples(st.integers(0, len(WRITTEN)), PIECES, st.integers(0, 3)), max_size=4),
)
def test_what_is_read_is_what_tomllib_reads(changes: list[tuple[int, str, int]]) -> None:
    text = WRITTEN
    for at, piece, removed in changes:
        text = text[:at] + piece + text[at + removed :]
    if (document := parse_plain(text)) is not None:
        assert document == tomllib.loads(text)
