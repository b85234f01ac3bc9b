"""The output options of one run."""

from collections.abc import Sequence
from enum import StrEnum

from rwq_cli.environment import Environment


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


class OutputOptions:
    """Where and how to write: the part of `Settings`, which sets the values, that output needs."""

    # With `null_separated`, `ids` and `data` end each record with NUL, and IDs are not escaped.
    # `fields`, `sort` and `by` are names of fields; `fields` has each once, and None means all.
    environment: Environment
    output: OutputFormat
    colour: bool
    null_separated: bool
    fields: Sequence[str] | None
    sort: str | None
    reverse: bool
    by: str | None

    @property
    def is_ordered(self) -> bool:
        return self.sort is not None or self.reverse

    @property
    def reads_all(self) -> bool:
        return self.is_ordered or self.by is not None

    @property
    def reshapes_records(self) -> bool:
        """True if not every command can honour the options: fields, an order, only IDs or data."""
        return self.fields is not None or self.reads_all or self.output.is_raw

    def end_progress(self) -> None:
        """End the progress line, if there is one, before results are written."""
        if (progress := vars(self).get("progress")) is not None:
            progress.end()
