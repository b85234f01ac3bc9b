"""A history in steps: what is the highest, the mean, the sum and the last."""

from rwq_cli.core.inspect.history import HistoryEntry, in_steps

FIRST = HistoryEntry(
    queue=b"jobs",
    at_ms=60_000,
    waiting=5,
    processing=1,
    abandoned=2,
    delayed=0,
    buried=3,
    done_per_minute=10,
    next_age_s=7,
    next_id=b"a",
)
SECOND = FIRST._replace(
    at_ms=120_000, waiting=4, processing=6, buried=1, done_per_minute=20, next_age_s=9, next_id=b"b"
)
UNKNOWN = FIRST._replace(at_ms=900_000, done_per_minute=None, next_age_s=None, next_id=None)


def test_a_step_has_what_its_minutes_come_to() -> None:
    steps = list(in_steps([FIRST, SECOND, UNKNOWN], 600_000))
    assert steps == [
        SECOND._replace(
            at_ms=0, waiting=5, abandoned=4, buried=3, done_per_minute=15, next_age_s=9
        ),
        UNKNOWN._replace(at_ms=600_000),
    ]
    assert list(in_steps([FIRST, SECOND], 0)) == [FIRST, SECOND]
