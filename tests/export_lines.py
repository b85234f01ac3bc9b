"""The lines of an export, for tests that restore items without a file."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.restore import Line
from rwq_cli.core.state.snapshot import ItemSnapshot


def lines_of(entries: Iterable[ItemSnapshot | Result]) -> Iterator[Line]:
    """Number entries like the lines of a file that contains only them."""
    return (Line(number, entry) for number, entry in enumerate(entries, 2))
