"""The steps of a page: what it types, and what it shows in return."""

import doctest
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.docs.machine import Machine, Ran
from tests.docs.matching import matches
from tests.docs.pages import Block, blocks, text_of

# The languages of blocks that run; the others are read.
RUN = ("console", "python", "pycon")
_HOST = re.compile(r"\bdb\d+\b")


class Step(NamedTuple):
    """A command or statement, and what the page shows for it; None where it shows nothing."""

    block: Block
    source: str
    shown: str | None

    def run(self, machine: Machine) -> Ran:
        """Run it."""
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
