"""What a fault is."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A text in a file of the tree, `times` times, what replaces it, and what that breaks."""

    name: str
    breaks: str
    file: str
    find: str
    replace: str
    times: int = 1
