"""What a fault is."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A text that is once in a file of the tree, what replaces it, and what that breaks."""

    name: str
    breaks: str
    file: str
    find: str
    replace: str
