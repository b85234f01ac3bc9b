"""One grammar for choosing items: the same for every verb, and the same as that of `ls`."""

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")

VERBS = ["release", "complete", "touch", "bury", "kick"]
NOTHING_CHOSEN = (
    "rwq: error: no items chosen; give IDs, or - to read them from stdin; or choose by "
    "{state}--match, --where, --id-glob, --older-than, {more}--returns or -n; or use --all\n"
)


@pytest.fixture
def filled(foreign: Foreign) -> Foreign:
    """Two waiting, two abandoned, one leased by another, one held, one orphan, one ghost."""
    foreign.waiting(b"w1", b"w2")
    foreign.abandoned(b"a1", b"a2")
    foreign.leased(b"l1")
    foreign.leased(b"h1", ttl_ms=None)
    foreign.data(b"o1")
    foreign.raw.lpush(foreign.keys.processing, b"g1")
    foreign.buried(b"buried")
    for item_id, data in ((b"w1", '{"t": {"id": 3}}'), (b"a2", '{"t": {"id": "3"}, "n": 1}')):
        foreign.raw.set(foreign.keys.item(item_id), data)
    return foreign


def chosen(rwq: Rwq, *words: str) -> list[str]:
    """The IDs that a verb deals with, whatever it says of them."""
    result = rwq(*words, "-o", "jsonl", "--dry-run")
    assert result.code in (0, 1, 3), result.notes
    return [record["id"] for record in result.jsonl]


def test_without_ids_or_options_it_is_an_error(rwq: Rwq, filled: Foreign) -> None:
    before = contents(filled.raw)
    own = {"bury": "--holder, ", "kick": "--reason, ", "touch": "--holder, "}
    for verb in VERBS:
        said = NOTHING_CHOSEN.format(
            state="" if verb == "kick" else "--state, ", more=own.get(verb, "--holder, --reason, ")
        )
        for words in ((), ("-n", "0"), ("--dry-run",)):
            assert rwq(verb, *words).as_tuple() == (2, "", said)
        if verb != "kick":
            said = "rwq: error: --all and --state cannot be used together; use one of them\n"
            assert rwq(verb, "--all", "--state", "leased").as_tuple() == (2, "", said)
    assert sorted(contents(filled.raw)) == sorted(before)


@pytest.mark.usefixtures("filled")
def test_options_select_these_items(rwq: Rwq) -> None:
    expected = {
        "complete -n 1": "w1",
        "complete --match of": "w2",
        "complete --all --where t.id=3": "w1 a2",
        "rm --all --where t.id=3 --where n<2": "a2",
        "mv --to other --where !n": "w1",
        "complete --state abandoned --id-glob *2": "a2",
        "complete --state leased --state held": "l1 h1",
        "complete --all": "w1 w2 a1 a2 l1 h1 buried o1",
        "complete --all --id-glob ?1": "w1 a1 l1 h1 o1",
        "complete --all -n 3": "w1 w2 a1",
        "complete --older-than 1h": "",
        "complete --older-than 0 -n 1": "w1",
        "complete --state held --state orphaned": "h1 o1",
        "release -n 1": "a1",
        # Those that were looked at twice come last.
        "release --all": "l1 h1 a1 a2",
        "release --match of.a": "a1",
        "release --state orphaned": "o1",
        "bury --all": "w1 w2 a1 a2",
        "bury --state orphaned --state leased": "l1 o1",
        "kick --all": "buried",
        "touch --all": "l1 h1",
        "touch -n 5": "l1",
        "touch --state held": "h1",
        # What they look at, where the verb would choose from other states.
        "complete --holder *": "l1 h1",
        "complete --holder * --state waiting": "",
        "bury --holder *": "l1 h1",
        "release --reason broken": "buried",
        "complete --all --reason broken": "buried",
    }
    found = {line: " ".join(chosen(rwq, *line.split())) for line in expected}
    assert found == expected
