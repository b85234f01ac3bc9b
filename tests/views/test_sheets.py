"""Every kind of record, made of made facts, in every format and at two widths, word for word.

`pytest --inline-snapshot=fix tests/views/test_sheets.py` writes the sheets anew.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import external_file

from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.output.field import Fields
from rwq_cli.output.records import Output
from tests.views.facts import RECORDS, in_product

SHEETS = Path(__file__).parent / "sheets"
WIDE, NARROW = 120, 44


def test_every_list_of_fields_has_made_records() -> None:
    sheets = {id(fields) for fields, _, _ in RECORDS.values()}
    missing = [row[:2] for key, row in in_product(Fields).items() if key not in sheets]
    assert missing == []


def _written(columns: int, write: Callable[[Output], object], **given: Any) -> str:
    """What a run with these options writes, colours as `<31>`."""
    stdout, stderr = io.BytesIO(), io.BytesIO()
    variables = {"COLUMNS": str(columns), "HOME": "/h"}
    environment = Environment(variables, io.BytesIO(), stdout, stderr)
    write(Settings(environment, {"color": "always", **given}).out)
    text = (stdout.getvalue() + stderr.getvalue()).decode(errors="backslashreplace")
    return re.sub(r"\x1b\[([\d;]*)m", r"<\1>", text)


@pytest.mark.parametrize("name", RECORDS)
def test_a_sheet_of_records_is_as_it_was(name: str) -> None:
    fields, records, sections = RECORDS[name]

    def table(out: Output) -> int:
        return out.table(records[: 4 if out.options.output.is_table else None], fields, ())

    def description(out: Output) -> int:
        return out.describe(records, fields, sections, is_one=False)

    sheets = [
        *((f"-o {output}", WIDE, table, output) for output in ("json", "csv", "table", "wide")),
        (f"on {NARROW} columns", NARROW, table, "table"),
        *((f"described on {columns}", columns, description, "table") for columns in (WIDE, NARROW)),
        ("described by -o plain", WIDE, description, "plain"),
    ]
    text = "".join(
        f"== {title}\n{_written(columns, write, output=output)}"
        for title, columns, write, output in sheets
    )
    assert text == external_file(str(SHEETS / f"{name}.txt"))


@pytest.mark.parametrize("name", [name for name in RECORDS if not RECORDS[name][0].is_stream])
def test_each_field_is_chosen_sorted_and_counted(name: str) -> None:
    fields, records, _ = RECORDS[name]
    lines = []

    def table(out: Output) -> int:
        return out.table(records[-3:], fields, fields.columns()[:1], limit=2)

    def described(out: Output) -> int:
        return out.describe(records[-2:], fields, is_one=False)

    for column in fields.columns():
        for output in ("ids", "data"):
            with pytest.raises(InvalidArgument):
                _written(WIDE, table, by=column.flat_name, output=output)
        if not column.is_bytes and f"{column.flat_name}_b64" not in fields.names:
            with pytest.raises(InvalidArgument):
                fields.only([f"{column.flat_name}_b64"])
    for option, output, names in (
        ("fields", "jsonl", fields.names),
        ("fields", "csv", fields.names),
        ("sort", "plain", [field.flat_name for field in fields.columns()]),
        ("by", "jsonl", [field.flat_name for field in fields.columns()]),
    ):
        for field in names:
            text = _written(WIDE, table, **{option: field, "output": output})
            lines.append(f"--{option} {field}\n{text}")
    lines.append(_written(WIDE, described, reverse=True, output="plain"))
    assert "".join(lines) == external_file(str(SHEETS / f"{name}-chosen.txt"))


@pytest.mark.parametrize("name", RECORDS)
def test_columns_leave_in_their_order(name: str) -> None:
    fields, records, _ = RECORDS[name]
    headings = {
        columns: _written(columns, lambda out: out.table(records[:4], fields, ()), output="table")
        for columns in range(10, 240, 6)
    }
    lines = (
        " ".join(re.sub(r"<\d+>", "", text.split("\n")[0]).split()) for text in headings.values()
    )
    text = "".join(f"{line}\n" for line in dict.fromkeys(lines))
    assert text == external_file(str(SHEETS / f"{name}-columns.txt"))
