"""What an error says of a stream that it ended."""

import pytest

from rwq_cli.core.batches import Acknowledged
from rwq_cli.core.errors import ServerError

# What was done call by call, of which the negative ones were refused; what the error says of it.
STEPS: tuple[tuple[list[int], int, tuple[tuple[int, int], ...]], ...] = (
    ([], 0, ()),
    ([3], 3, ()),
    ([3, 4, 0, 5], 12, ()),
    ([-3], 0, ()),
    ([3, -4], 3, ()),
    ([3, -4, 5], 3, ((7, 5),)),
    ([3, -4, 5, 6], 3, ((7, 11),)),
    ([3, -4, 5, -1, 2], 3, ((7, 5), (13, 2))),
    ([-2, 5], 0, ((2, 5),)),
    ([0, -2, 5], 0, ((2, 5),)),
)


def test_acknowledged_ranges_after_a_refusal() -> None:
    for steps, first, after in STEPS:
        error = ServerError("lost")
        with pytest.raises(ServerError):
            follow(steps, error)
        assert (error.acknowledged, error.acknowledged_after) == (first, after)


def follow(steps: list[int], error: Exception) -> None:
    with Acknowledged() as acknowledged:
        for count in steps:
            if count < 0:
                acknowledged.skip(-count)
            else:
                acknowledged.add(count)
        raise error


def test_errors_other_than_server_errors_are_raised_unchanged() -> None:
    with pytest.raises(ValueError, match="x"):
        follow([1], ValueError("x"))
