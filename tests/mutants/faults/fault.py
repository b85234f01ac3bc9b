"""What a fault is."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault.

    Attributes:
        name: Its name.
        breaks: What breaks, and for whom.
        file: The file that it is in, from the root of the tree.
        find: The text that is replaced.
        replace: What replaces it.
        times: How often the text is there; each place is changed.
    """

    name: str
    breaks: str
    file: str
    find: str
    replace: str
    times: int = 1
