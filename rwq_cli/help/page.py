"""A page of the manual. Its texts may have `code` between backquotes, and no other markup."""

from collections.abc import Sequence
from typing import NamedTuple


class PageSection(NamedTuple):
    """A part of a page.

    Attributes:
        heading: Its heading.
        text: A paragraph below the heading; empty for none.
        rows: Terms, each with what it means.
        code: Command lines, to be shown as they are.
    """

    heading: str
    text: str = ""
    rows: Sequence[tuple[str, str]] = ()
    code: Sequence[str] = ()


class Page(NamedTuple):
    """A page of the manual.

    Attributes:
        summary: One line without a full stop.
        text: A paragraph that introduces the sections.
        sections: The sections.
    """

    summary: str
    text: str
    sections: Sequence[PageSection]


def without_markup(text: str) -> str:
    """The text for a terminal or a plain file."""
    return text.replace("`", "")
