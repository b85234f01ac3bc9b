"""One grammar for choosing items: the same for every verb, and the same as that of `ls`."""

from itertools import chain

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.verbs import IDS_BY_STATE, LINES, fill, has_option, words_of

pytestmark = pytest.mark.usefixtures("slept_s")

# Those that choose by options, and do nothing unless something was chosen.
CHOOSING = [path for path in LINES if has_option(path, "--all") and has_option(path, "--dry-run")]
# Their options that choose, in the order of the message.
BURYING = ("bury", "--reason")
OPTIONS = (
    *("--state", "--match", "--where", "--id-glob", "--older-than", "--holder", "--reason"),
    *("--returns", "--ttl"),
)


@pytest.fixture
def filled(foreign: Foreign) -> Foreign:
    """With data to choose by."""
    fill(foreign)
    for item_id, data in ((b"w1", '{"t": {"id": 3}}'), (b"a2", '{"t": {"id": "3"}, "n": 1}')):
        foreign.raw.set(foreign.keys.item(item_id), data)
    return foreign


def chosen(rwq: Rwq, *words: str) -> list[str]:
    """The IDs that a verb deals with, whatever it says of them."""
    result = rwq(*words, "-o", "jsonl", "--dry-run")
    assert result.code in (0, 1, 3), result.notes
    return [record["id"] for record in result.jsonl]


@pytest.mark.parametrize("path", CHOOSING)
@pytest.mark.parametrize("words", ["", "-n 0", "--dry-run"])
def test_without_ids_or_options_it_is_an_error(
    rwq: Rwq, filled: Foreign, path: str, words: str
) -> None:
    ids = {item_id.decode() for item_id in (*chain(*IDS_BY_STATE.values()), b"gone")}
    line = [word for word in words_of(path) if word not in ids]
    # --reason of `bury` is the reason that it gives.
    options = [name for name in OPTIONS if has_option(path, name) and (path, name) != BURYING]
    error = (
        "rwq: error: no items chosen; give IDs, or - to read them from stdin; or choose by "
        f"{', '.join(options)} or -n; or use --all\n"
    )
    before = contents(filled.raw)
    assert rwq(*line, *words.split()).as_tuple() == (2, "", error)
    if "--state" in options:
        assert rwq(*line, "--all", "--state", "waiting").as_tuple()[:2] == (2, "")
    assert contents(filled.raw) == before


SELECTED = {
    "complete -n 1": "w1",
    "complete --match of": "w2 w3",
    "complete --all --where t.id=3": "w1 a2",
    "rm --all --where t.id=3 --where n<2": "a2",
    "mv --to other --where !n": "w1",
    "complete --state abandoned --id-glob *2": "a2",
    "complete --state leased --state held": "l1 h1",
    "complete --all": "l1 h1 w1 w2 w3 a1 a2 d1 b1 o1",
    "complete --all --id-glob ?1": "l1 h1 w1 a1 d1 b1 o1",
    "complete --all -n 4": "w1 w2 w3 a1",
    "complete --older-than 1h": "",
    "complete --older-than 0 -n 1": "w1",
    "complete --state held --state orphaned": "h1 o1",
    "release -n 1": "a1",
    "release --all": "a1 a2 l1 h1",
    "release --match of.a": "a1",
    "release --state orphaned": "o1",
    "bury --all": "w1 w2 w3 a1 a2",
    "bury --state orphaned --state leased": "l1 o1",
    "kick --all": "b1",
    "touch --all": "l1 h1",
    "touch -n 5": "l1",
    "touch --state held": "h1",
    # What they look at, where the verb would choose from other states.
    "complete --holder *": "l1 h1",
    "bury --holder *": "l1 h1",
    "release --reason broken": "b1",
    "complete --all --reason broken": "b1",
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("line", SELECTED)
def test_options_select_these_items(rwq: Rwq, line: str) -> None:
    assert " ".join(chosen(rwq, *line.split())) == SELECTED[line]


def test_a_lease_is_found_wherever_its_item_is(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a", holder=b"worker-7")
    foreign.raw.delete(foreign.keys.processing)
    line = "touch --state unlisted --holder worker-* --ttl >1s"
    assert chosen(rwq, *line.split()) == ["a"]


NEEDS = {"edit": "--run cat", "mv": "--to other"}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "line",
    [
        *("ls all", "ls all --by state", "export", "ls", "leases"),
        *(f"{path} --dry-run {NEEDS.get(path, '')}" for path in CHOOSING),
    ],
)
@pytest.mark.parametrize(("path", "name"), [("tenat.id=3", ".tenat.id"), ("['no']", "['no']")])
def test_a_path_that_no_item_has_is_named(rwq: Rwq, line: str, path: str, name: str) -> None:
    result = rwq(*line.split(), "--where", path, "--where", "t.x!=1")
    assert f"rwq: jobs: no item has {name}\n" in result.notes


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "line",
    [
        *("ls all --where t.id!=9", "ls all --where !x", "ls -q nothing --where x=1"),
        # Those behind the first two may have it.
        *("ls all -n 2 --where x!=1", "rm -n 2 --dry-run --where x!=1"),
    ],
)
def test_no_path_is_named_that_items_may_have(rwq: Rwq, line: str) -> None:
    assert "no item has" not in rwq(*line.split()).notes
