"""The generated parts of the pages are those that the code makes now, and leave nothing out."""

import json
import re

from rwq_cli.core.model import Status
from rwq_cli.core.repair.clean import Repair
from rwq_cli.core.work.job import Fate
from rwq_cli.output.outcomes import WORDS
from tests.conftest import Foreign
from tests.docs import reference
from tests.docs.pages import pages, text_of
from tests.docs.reference import OTHER_KINDS, SUMMARY
from tests.driver import Rwq


def test_what_is_generated_is_current() -> None:
    for page in pages():
        text = text_of(page)
        assert reference.with_generated_parts(text) == text, page
        # A marker that is misspelled would never be filled.
        markers = re.findall(r"^<!-- (?:end of the )?(\w+)", text, re.M)
        assert len(markers) == 2 * len(reference.generated_parts(text)), page


def test_the_reference_explains_what_else_is_in_json(rwq: Rwq, foreign: Foreign) -> None:
    meanings = {kind.title: list(kind.meanings) for kind in OTHER_KINDS}
    error = json.loads(rwq("lease", "--for", "soon", "-o", "json").err)
    assert set(error) <= set(meanings["An error"])
    foreign.waiting(b"2")
    foreign.raw.hset(foreign.keys.result(b"1"), mapping={"status": "completed", "completed_ms": 1})
    Foreign(foreign.raw, b"mail").waiting(b"1")
    for words in (("-q", "jobs"), ("--all-queues",)):
        header, *lines = rwq("export", *words).jsonl
        assert set(header) - {"queue_b64"} <= set(meanings["The first line of an export"])
        (result,) = (line for line in lines if "result_of" in line)
        names = {name for name in result if not name.endswith("_b64")}
        assert names <= set(meanings["A result in an export"])


def test_the_reference_explains_every_outcome() -> None:
    internal = {Status.IN_TRANSIT, Status.ELSEWHERE, Status.GUARDED}
    words = {*Status} - internal | {*Repair} | {*Fate}
    assert {str(word.value) for word in words} <= set(WORDS)


def test_the_reference_explains_all_summary_fields(rwq: Rwq) -> None:
    """Each command runs once, in an order in which it has something to do."""
    known = {word.replace("-", "_") for word in WORDS} | set(SUMMARY)
    known |= {"duplicates", "conflicts"}
    rwq("add", *"abcdefgh")
    ids = rwq("ls", "-o", "ids").text.split()
    rwq("lease", "-n", "4")
    export = rwq("export").out
    for line in (
        f"touch {ids[0]}",
        f"release {ids[0]} {ids[7]}",
        f"bury {ids[1]} --force --yes",
        f"kick {ids[1]} {ids[7]}",
        f"complete {ids[2]}",
        "complete --older-than 0s --yes",
        f"edit {ids[3]} --yes -f -",
        "clean light",
        "clean deep --grace 0",
        f"rm {ids[3]} --yes",
        "undo --yes",
        "mv --to other --all --force --yes",
        "undo --yes",
        "import -",
        "work --drain -- true",
        "purge --yes",
        "undo --prune --older-than 0s --yes",
        "add x -q {jobs:1} -q {jobs:2}",
    ):
        words = line.split()
        at = words.index("--") if "--" in words else len(words)
        result = rwq(*words[:at], "-o", "json", *words[at:], stdin=export)
        assert set(result.json) - known - {"queue_b64", "to_b64"} == set(), (line, result.json)
