"""How much a test does: as usual, or, with `--long`, for a night."""

import os

IS_LONG = "RWQ_LONG" in os.environ


def usual(number: int, *, long: int) -> int:
    """A number of items, kills or seconds."""
    return long if IS_LONG else number
