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


def test_abandoned_items_come_first_then_the_soonest(rwq: Rwq) -> None:
    assert rwq("leases", "-o", "ids").as_tuple() == (0, "abandoned\nsoon\nlater\nheld\n", "")


def test_items_have_states_and_holders(rwq: Rwq) -> None:
    records = rwq("leases", "-o", "json").json
    assert [(record["state"], (record["lease"] or {}).get("holder")) for record in records] == [
        ("abandoned", None),
        ("leased", "0a1b2c"),
        ("leased", "rwq:ann@host:1"),
        ("held", "rwq:bob@host:2"),
    ]
    left = [(record["lease"] or {}).get("ttl_ms") for record in records]
    assert left[0] is None
    assert left[3] is None
    assert 0 < left[1] <= 30_000
    assert 3_500_000 < left[2] <= 3_600_000


@pytest.mark.parametrize(
    ("glob", "ids"),
    [("rwq:*", "later held"), ("rwq:ann@*", "later"), ("0a1b2c", "soon"), ("rwq", ""), ("*", None)],
)
def test_a_glob_selects_holders(rwq: Rwq, glob: str, ids: str | None) -> None:
    expected = "soon later held" if ids is None else ids
    assert rwq("leases", "--holder", glob, "-o", "ids").text.split() == expected.split()


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("--state abandoned", "abandoned"),
        ("--state held --state leased", "soon later held"),
        ("--id-glob *o*", "abandoned soon"),
        ("--returns >=2 --holder *", "later"),
        ("--match held", "held"),
        ("--state waiting", None),
    ],
)
@pytest.mark.needs("no-touch")
def test_options_choose_among_the_leases(
    rwq: Rwq, foreign: Foreign, words: str, ids: str | None
) -> None:
    foreign.raw.hset(foreign.keys.returns, mapping={"later": 2, "soon": 1})
    result = rwq("leases", *words.split(), "-o", "ids")
    assert (result.code, result.text.split()) == ((2, []) if ids is None else (0, ids.split()))


def test_holder_is_short_for_lease_holder_everywhere(rwq: Rwq) -> None:
    for option, how in (("--fields", "plain"), ("--sort", "ids"), ("--by", "plain")):
        long, short = (rwq("leases", option, n, "-o", how) for n in ("lease_holder", "holder"))
        assert (short.code, short.text) == (0, long.text), option
    assert rwq("leases", "--fields", "holder", "-o", "csv").lines[0] == "holder"
    assert {"holder"} == set(rwq("leases", "--fields", "holder", "-o", "jsonl").jsonl[0])


def test_mine_are_those_of_this_session(rwq: Rwq, foreign: Foreign) -> None:
    session = {"RWQ_SESSION": "[a*]"}
    foreign.waiting(b"another")
    rwq("lease", variables=session)
    rwq("lease", variables={"RWQ_SESSION": "aa"})
    assert rwq("leases", "--mine", "-o", "ids", variables=session).text == "waiting\n"
    assert rwq("leases", "--mine", "--holder", "*").code == 2


def test_n_limits_the_items(rwq: Rwq, foreign: Foreign) -> None:
    assert rwq("leases", "-n", "2", "-o", "ids").text == "abandoned\nsoon\n"
    foreign.leased(*(b"x%03d" % number for number in range(100)), ttl_ms=60_000)
    assert len(rwq("leases", "-o", "ids").text.split()) == 50
    assert len(rwq("leases", "-n", "0", "-o", "ids").text.split()) == 104


@pytest.mark.needs("no-touch")
def test_plain_is_a_line_an_item(rwq: Rwq) -> None:
    rows = [row.split("\t") for row in rwq("leases").text.splitlines()]
    assert rows[0] == ["abandoned", "abandoned", "", "", "17", "data of abandoned"]
    assert rows[3] == ["held", "held", "rwq:bob@host:2", "", "12", "data of held"]


@pytest.mark.needs("no-touch")
def test_the_table_and_its_footer(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.delete("jobs:processing")
    foreign.abandoned(b"abandoned")
    foreign.leased(b"held", holder=b"rwq:bob@host:2", ttl_ms=None)
    result = rwq("leases", "-o", "table")
    assert result.lines == [
        "ID         STATE      HOLDER          TIME LEFT  SIZE  DATA",
        "────────────────────────────────────────────────────────────────────────",
        "abandoned  abandoned  -                       -  17 B  data of abandoned",
        "held       held       rwq:bob@host:2  no expiry  12 B  data of held",
    ]
    assert (result.code, result.notes) == (0, "2 shown of 2 processing in jobs\n")


def test_a_lease_of_0_1_is_listed(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.flushall()
    foreign.abandoned(b"old")
    foreign.lease(b"old", holder=b"a-01-worker", generations="old")
    (record,) = rwq("leases", "-o", "json").json
    assert (record["state"], record["lease"]["holder"]) == ("leased", "a-01-worker")
