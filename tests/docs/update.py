"""Writes into pages what their commands print: `python -m tests.docs.update docs/FILE.md ...`.

What a page shows stays as it is where it matches; so wildcards stay. A blank line after an output
stays, too.
"""

import sys

from tests.docs.machine import Ran, machine
from tests.docs.pages import ROOT, text_of
from tests.docs.steps import Step, hosts, steps


def updated(page: str) -> str:
    """The page with what its commands print now."""
    with machine(hosts(page)) as one:
        ran = [(step, step.run(one)) for step in steps(page)]
    lines = text_of(page).splitlines()
    shown: dict[int, list[str]] = {}
    for step, result in ran:
        shown.setdefault(step.block.line, []).extend(_lines(step, result))
        if step.shown is None and result.status:
            print(f"{step.block.place}: {result.output}", file=sys.stderr)
    for step, _ in reversed(ran):
        block = step.block
        if block.language != "python" and (new := shown.pop(block.line, None)) is not None:
            begin = block.line - 1
            while new and not new[-1]:
                new.pop()
            lines[begin : begin + block.text.count("\n")] = [
                f"{block.indent}{line}".rstrip() for line in new
            ]
    return "\n".join(lines) + "\n"


def _lines(step: Step, ran: Ran) -> list[str]:
    first, more = (">>> ", "... ") if step.block.language == "pycon" else ("$ ", "> ")
    typed = step.source.splitlines()
    prompts = [first, *[more] * (len(typed) - 1)]
    shown = step.shown or ""
    blank = "\n" if shown.endswith("\n\n") or shown == "\n" else ""
    output = shown if step.is_as_shown(ran) else f"{ran.output.rstrip()}\n{blank}".lstrip("\n")
    if not ran.output.strip() and not step.is_as_shown(ran):
        output = blank
    return [
        *(f"{prompt}{line}".rstrip() for prompt, line in zip(prompts, typed, strict=True)),
        *output.splitlines(),
    ]


def main() -> None:
    """Update the pages that are named."""
    for page in sys.argv[1:]:
        (ROOT / page).write_text(updated(page), "utf-8")


if __name__ == "__main__":
    main()
