"""The generated parts of the pages are those that the code makes now, and leave nothing out."""

import json
import re

import pytest

from rwq_cli.core.model import Status
from rwq_cli.core.repair.clean import Repair
from rwq_cli.core.work.job import Fate
from rwq_cli.output.tally import WORDS
from tests.conftest import Foreign
from tests.docs import reference
from tests.docs.pages import pages, text_of
from tests.docs.reference import OTHER_KINDS, SUMMARY
from tests.driver import Rwq
from tests.verbs import VERBS


@pytest.mark.parametrize("page", pages())
def test_what_is_generated_is_current(page: str) -> None:
    text = text_of(page)
    assert reference.with_generated_parts(text) == text
    # A marker that is misspelled would never be filled.
    markers = re.findall(r"^<!-- (?:end of the )?(\w+)", text, re.M)
    assert len(markers) == 2 * len(reference.generated_parts(text))


@pytest.mark.parametrize("words", [("-q", "jobs"), ("--all-queues",)])
def test_the_reference_explains_what_else_is_in_json(
    rwq: Rwq, foreign: Foreign, words: tuple[str, ...]
) -> None:
    meanings = {kind.title: list(kind.meanings) for kind in OTHER_KINDS}
    error = json.loads(rwq("lease", "--for", "soon", "-o", "json").err)
    assert set(error) <= set(meanings["An error"])
    foreign.waiting(b"2")
    foreign.raw.hset(foreign.keys.result(b"1"), mapping={"status": "completed", "completed_ms": 1})
    Foreign(foreign.raw, b"mail").waiting(b"1")
    header, *lines = rwq("export", *words).jsonl
    assert set(header) - {"queue_b64"} <= set(meanings["The first line of an export"])
    (result,) = (line for line in lines if "result_of" in line)
    names = {name for name in result if not name.endswith("_b64")}
    assert names <= set(meanings["A result in an export"])


def test_the_reference_explains_every_outcome() -> None:
    internal = {Status.IN_TRANSIT, Status.ELSEWHERE, Status.GUARDED}
    words = {*Status} - internal | {*Repair} | {*Fate}
    assert {str(word.value) for word in words} <= set(WORDS)


@pytest.mark.parametrize("path", [path for path in VERBS if VERBS[path].counts])
def test_the_reference_explains_all_summary_fields(path: str) -> None:
    """What is in a summary is in its row: `test_formats.py`."""
    known = {word.replace("-", "_") for word in WORDS} | {*SUMMARY, "duplicates", "conflicts"}
    assert {name for name in VERBS[path].counts.split() if not name.endswith("_b64")} <= known
