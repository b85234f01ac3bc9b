"""The width of text on a terminal, and text that is cut to a width.

A width is a number of cells: most characters take one, Chinese ones and emoji two, accents none.
"""

from rich.cells import cell_len, split_text


def width(text: str) -> int:
    """How many cells a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, room: int, *, middle: bool = False) -> str:
    """A text that takes at most `room` cells: `…` replaces its end, or its middle."""
    excess = width(text) - room
    if excess <= 0:
        return text
    head = (room - 1) // 2 if middle else room - 1
    tail = room - 1 - head
    skipped = room + excess - tail
    if text.isascii():
        return f"{text[:head]}…{text[skipped:]}"
    # Half of a wide character becomes a space.
    before = split_text(text, head)[0].rstrip()
    return f"{before}…{split_text(text, skipped)[1].lstrip() if tail else ''}"
