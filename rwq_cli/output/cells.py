"""Text on a terminal: its width, cut, wrapped and coloured. The only module that knows rich.

A width is a number of cells: most characters take one, Chinese ones and emoji two, accents none.
"""

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


def width(text: str) -> int:
    """How many cells a text takes."""
    # What `cut` has cut needs no rich, either: its import takes 10 ms.
    if text.isascii() or text.replace("…", "").isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


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
    from rich.cells import split_text

    # Half of a wide character becomes a space.
    before, after = split_text(text, head)[0], split_text(text, skipped)[1]
    return f"{before.rstrip()}…{after.lstrip()}"


def wrapped(text: str, room: int) -> list[str]:
    """The lines of a text, each of at most `room` cells; only longer words are broken."""
    lines: list[str] = []
    line: str | None = None
    used = 0
    for word in text.split(" "):
        size = width(word)
        if line is not None and used + 1 + size <= room:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line is not None:
            lines.append(line)
        *whole, line = _pieces(word, room)
        lines += whole
        used = width(line)
    return [*lines, line or ""]


def _pieces(word: str, room: int) -> list[str]:
    if word.isascii():
        return [word[start : start + room] for start in range(0, len(word), room)] or [""]
    from rich.cells import chop_cells

    return chop_cells(word, room) or [word]


def painted(text: str, style: str | None, *, colour: bool) -> str:
    """A text in a style, such as `red`, where there is colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and style and text else text
