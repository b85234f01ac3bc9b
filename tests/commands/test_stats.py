"""`rwq stats`: counts by state, ages, leases and sizes, as deep as is asked for."""

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

ONLY_DEEP = [
    *("orphaned", "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
    *("returns", "results"),
]


@pytest.fixture
def filled(foreign: Foreign) -> None:
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.leased(b"l1", ttl_ms=30_000)
    foreign.leased(b"l2", ttl_ms=3_600_000)
    foreign.leased(b"h1", ttl_ms=None)
    foreign.abandoned(b"a1", b"a2")
    foreign.delayed(b"d1", 9_999_999_999_999)
    foreign.delayed(b"due1", 1)
    foreign.buried(b"b1")
    foreign.data(b"o1")
    foreign.data(b"u1")
    foreign.lease(b"u1")
    foreign.raw.lpush(foreign.keys.main, b"w1", b"ghost")
    foreign.raw.lpush(foreign.keys.processing, b"ghost2")
    foreign.raw.hset(foreign.keys.returns, mapping={"w1": 4, "a1": 1})
    foreign.raw.hset("jobs:result:done", mapping={"status": "completed", "completed_ms": 5})


@pytest.mark.usefixtures("filled")
class TestCounts:
    def test_fast_counts_the_lists_only(self, rwq: Rwq) -> None:
        record = rwq("stats", "--fast", "-o", "json").json
        lengths = ("waiting", "processing", "delayed", "buried", "returned")
        assert [record[name] for name in lengths] == [5, 6, 2, 1, 2]
        known = {name for name, value in record.items() if value}
        assert known == {"queue", *lengths}

    def test_the_table_of_counts(self, rwq: Rwq) -> None:
        lines = rwq("stats", "--deep", "-o", "table").text.splitlines()
        assert lines[0] == "jobs"
        # What is due is a part of what is delayed.
        assert lines[5] == "     delayed  2 (1 due)"
        rows = [tuple(line.split("  ")) for line in map(str.strip, lines[1:16])]
        assert rows == [
            *(("waiting", "5"), ("leased", "2"), ("abandoned", "2"), ("held", "1")),
            *(("delayed", "2 (1 due)"), ("buried", "1"), ("orphaned", "1"), ("unlisted", "1")),
            *(("duplicated", "1"), ("ghosts", "2"), ("stray leases", "0"), ("wrong types", "0")),
            *(("returned", "2"), ("returns", "5"), ("results", "1")),
        ]
        assert not any("not counted" in line for line in lines)

    @pytest.mark.parametrize(
        ("line", "counts"),
        [("stats", "{} (--deep counts them)"), ("stats --fast", "leased, abandoned, held, {}")],
    )
    def test_the_table_says_what_is_not_counted(self, rwq: Rwq, line: str, counts: str) -> None:
        lines = rwq(*line.split(), "-o", "table").lines
        (at,) = [at for at, text in enumerate(lines) if text.startswith("not counted")]
        text = " ".join(" ".join(lines[at:]).split())
        unknown = ", ".join(ONLY_DEEP).replace("_", " ")
        assert text.startswith(f"not counted {counts.format(unknown)}")
