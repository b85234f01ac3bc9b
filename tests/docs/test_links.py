"""The links of the pages: files and headings that they name exist."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import ROOT, pages, text_of, without_code

_INLINE = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_DEFINED = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.M)
_IN_HTML = re.compile(r"""<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=["']([^"']+)["']""")
_IDENTIFIED = re.compile(r"""<\w+\b[^>]*?\b(?:id|name)=["']([^"']+)["']""")


def links(page: str) -> list[str]:
    text = re.sub(r"(`+)[^`].*?\1", "", without_code(text_of(page)))
    return [*_INLINE.findall(text), *_DEFINED.findall(text), *_IN_HTML.findall(text)]


@cache
def anchors(page: str) -> set[str]:
    """The anchors of a page, as code hosts make them from headings."""
    text = without_code(text_of(page))
    found: set[str] = set(_IDENTIFIED.findall(text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.M):
        words = re.sub(r"\]\([^)]*\)", "]", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(anchor)
    return found


def missing(page: str, link: str) -> str | None:
    """What is wrong with a link; None if nothing is."""
    parts = urlsplit(link)
    if parts.scheme:
        is_web = parts.scheme in ("http", "https") and "." in parts.netloc
        return None if is_web or parts.scheme == "mailto" else "no address of the web"
    target = (ROOT / page).parent / unquote(parts.path) if parts.path else ROOT / page
    if not target.exists():
        return "no such file"
    if not target.resolve().is_relative_to(ROOT):
        return "outside the repository"
    if parts.fragment and target.suffix == ".md":
        name = str(Path(target.resolve()).relative_to(ROOT))
        return None if parts.fragment in anchors(name) else "no such heading"
    return None


@pytest.mark.parametrize("page", pages())
def test_what_the_page_links_to_exists(page: str) -> None:
    wrong = {link: reason for link in links(page) if (reason := missing(page, link))}
    assert wrong == {}


def test_every_page_can_be_reached_from_the_first() -> None:
    reached, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for link in links(page):
            target = ((ROOT / page).parent / urlsplit(link).path).resolve()
            if target.suffix == ".md" and not urlsplit(link).scheme and target.exists():
                name = str(target.relative_to(ROOT))
                if name not in reached:
                    todo.append(name)
    assert set(pages()) - reached == set()
