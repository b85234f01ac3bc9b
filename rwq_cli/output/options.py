"""The output options of one run."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.environment import Environment

if TYPE_CHECKING:
    from rwq_cli.output.progress import TerminalProgress


class OutputFormat(StrEnum):
    TABLE = "table"
    PLAIN = "plain"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    IDS = "ids"
    DATA = "data"

    @property
    def is_table(self) -> bool:
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)

    @property
    def is_json(self) -> bool:
        return self in (OutputFormat.JSON, OutputFormat.JSONL)

    @property
    def is_machine_readable(self) -> bool:
        return self.is_json or self is OutputFormat.CSV

    @property
    def is_raw(self) -> bool:
        return self in (OutputFormat.DATA, OutputFormat.IDS)


class OutputOptions(NamedTuple):
    """Where and how to write."""

    # With `null_separated`, `ids` and `data` end each record with NUL, and IDs are not escaped. The
    # progress line ends before results are written. `fields`, `sort` and `by` are names of fields.
    environment: Environment
    format: OutputFormat
    colour: bool = True
    null_separated: bool = False
    progress: "TerminalProgress | None" = None
    fields: Sequence[str] | None = None
    sort: str | None = None
    reverse: bool = False
    by: str | None = None

    @property
    def is_ordered(self) -> bool:
        return self.sort is not None or self.reverse

    @property
    def reads_all(self) -> bool:
        return self.is_ordered or self.by is not None

    @property
    def is_special(self) -> bool:
        """True if not every command can honour them: fields, an order, nothing but IDs or data."""
        return self.fields is not None or self.reads_all or self.format.is_raw

    def end_progress(self) -> None:
        if self.progress is not None:
            self.progress.end()
