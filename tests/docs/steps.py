"""The steps of a page: what it types, and what it shows in return.

That is what was printed, except for what differs from run to run: a duration, a date, a random ID
and a number of milliseconds or seconds in JSON match any other of their kind; in the page, `…`
matches anything within a line, and a line `...` any number of lines. Where the page has one of
these, a run of blanks or of `─` matches any other, as columns are as wide as what is in them.
"""

import doctest
import re
from collections.abc import Iterator
from difflib import unified_diff
from typing import NamedTuple

from tests.docs.machine import Machine, Ran
from tests.docs.pages import Block, blocks, text_of

# The languages of blocks that run; the others are read.
RUN = ("console", "python", "pycon")
_HOST = re.compile(r"\bdb\d+\b")
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


class Step(NamedTuple):
    """A command or statement, and what the page shows for it; None where it shows nothing."""

    block: Block
    source: str
    shown: str | None

    def run(self, machine: Machine) -> Ran:
        if self.block.language == "console":
            return machine.bash(self.source)
        return machine.python(self.source, shows_value=self.block.language == "pycon")

    def is_as_shown(self, ran: Ran) -> bool:
        """Whether the page shows what came of it; a block that shows nothing must not fail."""
        return ran.status == 0 if self.shown is None else matches(self.shown, ran.output)


def steps(page: str) -> list[Step]:
    """The steps of a page, in its order."""
    return [step for block in blocks(page) if block.language in RUN for step in _of_block(block)]


def hosts(page: str) -> set[str]:
    """The names of the servers that a page speaks of; every machine has one of its own."""
    return {"localhost", *_HOST.findall(text_of(page))}


def _of_block(block: Block) -> Iterator[Step]:
    if block.language == "python":
        # In its place in the page, so that a traceback names the line.
        yield Step(block, "\n" * (block.line - 1) + block.text, None)
    elif block.language == "pycon":
        for example in doctest.DocTestParser().get_examples(block.text):
            yield Step(block, example.source, example.want)
    else:
        yield from _typed(block)


def _typed(block: Block) -> Iterator[Step]:
    """The commands of a shell: `$ ` begins one, and `> ` continues it."""
    typed: list[str] = []
    shown: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if typed:
                yield Step(block, "\n".join(typed), _text(shown))
            typed, shown = [line[2:]], []
        elif line.startswith("> ") and not shown:
            typed.append(line[2:])
        elif line == ">" and not shown:
            typed.append("")
        else:
            assert typed, f"{block.place}: a console block begins with `$ `"
            shown.append(line)
    yield Step(block, "\n".join(typed), _text(shown))


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
