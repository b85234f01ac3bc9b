"""As much of a terminal as redrawing in place needs."""

import re

_SEQUENCE = re.compile(rb"\x1b\[(\??)([0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


def shown(output: bytes) -> list[str]:
    """The lines on a tall terminal after this output, without the empty ones at the end.

    Raises:
        AssertionError: The output has a sequence that a terminal must not be left with, such as one
            that hides the cursor or changes to another screen.
    """
    rows: list[str] = [""]
    row = 0
    at_start = True
    for match in _SEQUENCE.finditer(output):
        private, number, final = (part or b"" for part in match.groups())
        text = match[0]
        if text == b"\r":
            at_start = True
        elif text == b"\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif not final:
            rows[row] = text.decode() if at_start else rows[row] + text.decode()
            at_start = False
        elif final == b"A":
            row = max(0, row - int(number or 1))
        elif final == b"J" and number == b"2":
            rows, row = [""], 0
        elif final == b"J":
            del rows[row + 1 :]
        elif final == b"K":
            rows[row], at_start = "", True
        else:
            assert final in (b"m", b"H") or (private, number) == (b"?", b"7"), match[0]
    while rows and not rows[-1].strip():
        rows.pop()
    return [line.rstrip() for line in rows]
