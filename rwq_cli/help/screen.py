"""Writes a page to the screen, in the form of the help of the commands."""

from typing import Any

from rwq_cli.help.page import Page, without_markup


def write_page(page: Page, formatter: Any) -> None:
    """Write a page with Typer's formatter, which knows the width."""
    formatter.write_text(f"{page.summary}.")
    formatter.write_paragraph()
    formatter.write_text(without_markup(page.text))
    for section in page.sections:
        with formatter.section(section.heading):
            if section.text:
                formatter.write_text(without_markup(section.text))
            if section.rows:
                formatter.write_dl([tuple(map(without_markup, row)) for row in section.rows])
            if section.code:
                formatter.write_paragraph()
            for line in section.code:
                formatter.write(f"    {line}\n")
