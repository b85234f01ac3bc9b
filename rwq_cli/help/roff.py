r"""Writes a page as roff, with the `man` macros that groff and mandoc share.

All text is escaped so that it reads, and can be copied, exactly as it was written: roff would turn
`-` into a hyphen, and other characters into quotation marks, accents or requests.
"""

from collections.abc import Iterator

from rwq_cli.help.page import Page

_ESCAPES = str.maketrans(
    {
        "\\": r"\e",
        "-": r"\-",
        "'": r"\(aq",
        '"': r"\(dq",
        "`": r"\(ga",
        "^": r"\(ha",
        "~": r"\(ti",
    }
)


def roff(name: str, page: Page, version: str, synopsis: str | None = None) -> str:
    """A page of section 1, as the source of a man page.

    Args:
        name: Its name, such as `rwq-clean-light`.
        page: The page.
        version: The version of rwq.
        synopsis: How the command is called; None for a topic, whose sections are then parts of its
            description.
    """
    return "\n".join(_lines(name, page, version, synopsis)) + "\n"


def _lines(name: str, page: Page, version: str, synopsis: str | None) -> Iterator[str]:
    yield '.\\" Made by: rwq man'
    # Without a date, the same version has the same pages.
    yield f'.TH {_escaped(name.upper())} 1 "" "rwq {_escaped(version)}" "rwq manual"'
    # Neither hyphens nor wide gaps: names and options stay whole.
    yield from (".nh", ".ad l")
    yield ".SH NAME"
    yield f"{_escaped(name)} \\- {_styled(page.summary)}"
    if synopsis is not None:
        yield ".SH SYNOPSIS"
        yield _line(synopsis)
    yield ".SH DESCRIPTION"
    yield _line(page.text)
    for section in page.sections:
        heading = section.heading if synopsis is None else section.heading.upper()
        yield f'{".SS" if synopsis is None else ".SH"} "{_escaped(heading)}"'
        if section.text:
            yield _line(section.text)
        for term, text in section.rows:
            yield from (".TP", _term(term), _line(text))
        if section.code:
            # A gap between two paragraphs.
            yield from [".PP"] * bool(section.text)
            yield from (".RS 4", ".nf")
            yield from (_guarded(_escaped(line)) for line in section.code)
            yield from (".fi", ".RE")


def _escaped(text: str) -> str:
    """Text that roff shows as it is; it may begin with a dot."""
    return "".join(
        char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text.translate(_ESCAPES)
    )


def _styled(text: str, other: str = "") -> str:
    """Text with its `code` in bold; `other` is the font of the rest."""
    parts = text.split("`")
    fonts = [other if number % 2 == 0 else "B" for number in range(len(parts))]
    return "".join(
        f"\\f{font}{_escaped(part)}\\fR" if font and part.strip(" ,") else _escaped(part)
        for font, part in zip(fonts, parts, strict=True)
    )


def _line(text: str) -> str:
    return _guarded(_styled(" ".join(text.split())))


def _term(term: str) -> str:
    return _guarded(_styled(term, other="I"))


def _guarded(line: str) -> str:
    """A line that is not a request, even if it begins with a dot."""
    return f"\\&{line}" if line.startswith(".") else line
