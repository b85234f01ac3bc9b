"""The first page is read by those in a hurry."""

import re

from tests.docs.pages import text_of, without_code

WORDS_MAX = 30
# A full stop in these ends no sentence.
_SHORT = re.compile(r"\b(e\.g|i\.e|etc|vs)\.")


def sentences(text: str) -> list[str]:
    """The sentences of a page; code in a line counts as a word, tables and link targets as none."""
    kept = []
    for line in without_code(text).splitlines():
        if line.lstrip().startswith(("|", "<", "#", "![")):
            line = ""
        # Each item of a list begins a sentence.
        kept.append(re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", line))
    found = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(kept)):
        words = re.sub(r"(`+)[^`]+?\1", "code", paragraph)
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", words)
        words = _SHORT.sub(r"\1", words)
        found += re.split(r"(?<=[.!?:])[\"')*]*\s+", words.strip())
    return [" ".join(sentence.split()) for sentence in found if sentence.strip()]


def test_no_sentence_of_the_first_page_is_longer_than_thirty_words() -> None:
    long = [one for one in sentences(text_of("README.md")) if len(one.split()) > WORDS_MAX]
    assert long == []


def test_sentences_are_counted_as_they_are_read() -> None:
    text = "# T\n\nOne `a b` [two](x.md). Three,\nfour: five\n\n- six\n- 7\n\n```text\nno\n```\n"
    assert sentences(text) == ["One code two.", "Three, four:", "five", "six", "7"]
