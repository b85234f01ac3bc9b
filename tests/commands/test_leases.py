"""`rwq leases`: who holds what for how long, the most urgent first."""

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq


@pytest.fixture(autouse=True)
def filled(foreign: Foreign) -> None:
    foreign.waiting(b"waiting")
    foreign.leased(b"later", holder=b"rwq:ann@host:1", ttl_ms=3_600_000)
    foreign.leased(b"held", holder=b"rwq:bob@host:2", ttl_ms=None)
    foreign.abandoned(b"abandoned")
    foreign.leased(b"soon", holder=b"0a1b2c", ttl_ms=30_000)


@pytest.mark.needs("no-touch")
def test_options_choose_among_the_leases(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.hset(foreign.keys.returns, mapping={"later": 2, "soon": 1})
    expected = {
        "--state abandoned": "abandoned",
        "--state held --state leased": "soon later held",
        "--id-glob *o*": "abandoned soon",
        "--returns >=2 --holder *": "later",
        "--match held": "held",
        "--holder rwq:*": "later held",
        "--holder 0a1b2c": "soon",
        "--holder rwq": "",
        "--ttl >1m": "later held",
        "--ttl <=1m": "soon",
        "--holder *": "soon later held",
    }
    found = {words: rwq("leases", *words.split(), "-o", "ids").text for words in expected}
    assert {words: " ".join(text.split()) for words, text in found.items()} == expected


@pytest.mark.parametrize("line", ["-o plain --fields", "-o ids --sort", "-o plain --by"])
def test_holder_is_short_for_lease_holder_everywhere(rwq: Rwq, line: str) -> None:
    long, short = (rwq("leases", *line.split(), name) for name in ("lease_holder", "holder"))
    assert (short.code, short.text) == (0, long.text)
    assert rwq("leases", "--fields", "holder", "-o", "csv").lines[0] == "holder"
    assert {"holder"} == set(rwq("leases", "--fields", "holder", "-o", "jsonl").jsonl[0])


def test_mine_are_those_of_this_session(rwq: Rwq, foreign: Foreign) -> None:
    session = {"RWQ_SESSION": "[a*]"}
    foreign.waiting(b"another")
    rwq("lease", variables=session)
    rwq("lease", variables={"RWQ_SESSION": "aa"})
    assert rwq("leases", "--mine", "-o", "ids", variables=session).text == "waiting\n"
