"""The output options of one run."""

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.environment import Environment

if TYPE_CHECKING:
    from rwq_cli.output.progress import TerminalProgress


class OutputFormat(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    PLAIN = "plain"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    IDS = "ids"
    DATA = "data"


class OutputOptions(NamedTuple):
    """Where and how to write.

    Attributes:
        environment: The streams.
        format: The output format.
        colour: Whether colour may be used on a terminal.
        null_separated: Whether `ids` and `data` end each record with NUL; IDs are not escaped then.
        progress: The progress line, which ends before results are written; None for none.
    """

    environment: Environment
    format: OutputFormat
    colour: bool = True
    null_separated: bool = False
    progress: "TerminalProgress | None" = None

    def end_progress(self) -> None:
        """Remove the progress line: results are written now."""
        if self.progress is not None:
            self.progress.end()
