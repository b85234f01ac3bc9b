"""Comparing what a page shows with what a command printed.

Both are the same text, except for what differs from run to run: a duration, a date, a random ID and
a number of milliseconds or seconds in JSON match any other of their kind; in the page, `…` matches
anything within a line, and a line `...` any number of lines. Where the page has one of these, a run
of blanks or of `─` matches any other, because columns are as wide as what is in them.
"""

import re
from difflib import unified_diff

_DURATION = r"\b\d+(?:\.\d+)?(?:ms|[smhd])(?:\d+[smh])*\b"
_KINDS = {
    "rest": "…",
    # The other one is said by a server that has just been started.
    "age": rf"\boldest {_DURATION}|\bage>={_DURATION}, server up {_DURATION}",
    "ago": rf"\bjust now\b|{_DURATION} ago\b",
    "duration": _DURATION,
    "moment": r"\b\d{4}-\d\d-\d\d[T ]?\d\d:?\d\d:?\d\d(?:\.\d+)?",
    "random": r"\b[0-9a-f]{32}\b",
    "number": r'(?<=(?:_ms|nds)":)(?: ?)\d+(?:\.\d+)?',
}
_VARIABLE = re.compile("|".join(f"(?P<{name}>{kind})" for name, kind in _KINDS.items()))
_WIDE = re.compile(r"( {2,})|(─+)")


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed."""
    pattern = _pattern(_trimmed(shown))
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def difference(shown: str, printed: str) -> str:
    """Both as a diff."""
    pair = (text.splitlines() for text in (_trimmed(shown), _trimmed(printed)))
    return "\n".join(unified_diff(*pair, "the page", "the run", lineterm="", n=10))


def _trimmed(text: str) -> str:
    """Without blanks at the ends of lines, and without empty lines at the end."""
    lines = "".join(f"{line.rstrip()}\n" for line in text.splitlines()).rstrip("\n")
    return f"{lines}\n" if lines else ""


def _pattern(shown: str) -> str:
    is_variable = _VARIABLE.search(shown) is not None
    return "".join(
        r"(?:.*\n)*?" if line == "...\n" else _of_line(line, is_variable)
        for line in shown.splitlines(keepends=True)
    )


def _of_line(line: str, is_variable: bool) -> str:
    parts, end = [], 0
    for found in _VARIABLE.finditer(line):
        parts.append(_plain(line[end : found.start()], is_variable))
        kind = found.lastgroup
        assert kind is not None
        parts.append(".*?" if kind == "rest" else f"(?:{_KINDS[kind]})")
        end = found.end()
    return "".join([*parts, _plain(line[end:], is_variable)])


def _plain(text: str, is_variable: bool) -> str:
    if not is_variable:
        return re.escape(text)
    parts, end = [], 0
    for found in _WIDE.finditer(text):
        parts += [re.escape(text[end : found.start()]), " {2,}" if found[1] else "─+"]
        end = found.end()
    return "".join([*parts, re.escape(text[end:])])
