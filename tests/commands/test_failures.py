"""The failures of a batch are named on stderr, with the reason and the way out."""

import re

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")


def named(notes: str) -> dict[str, str]:
    """The reasons by ID; the time left, which goes by, as TIME."""
    lines = [line.split(": ", 2) for line in notes.splitlines() if line.startswith("rwq: ")]
    return {item_id: re.sub(r"for [0-9ms.]+;", "for TIME;", reason) for _, item_id, reason in lines}


def test_a_leased_item_names_its_holder_and_the_way_out(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"17", holder=b"worker-3", ttl_ms=250_000)
    foreign.leased(b"18", holder=b"worker-4", ttl_ms=None)
    more = "rwq show -q jobs ID says more; without --owner it would be completed"
    for line, way_out in {
        "release": "--force ends its lease",
        "bury": "--force ends its lease",
        "mv --to other --yes": "--force moves it anyway",
        "complete --owner me": more,
    }.items():
        notes = rwq(*line.split(), "17", "18").notes
        assert named(notes) == {
            "17": f"leased by worker-3 for TIME; {way_out.replace('ID', '17')}",
            "18": f"leased by worker-4 without expiry; {way_out.replace('ID', '18')}",
        }
        assert notes.splitlines()[-1].startswith("not owner 2")
        assert re.search(r"for 4m\d+s;", notes)


def test_the_first_five_are_named(rwq: Rwq, foreign: Foreign) -> None:
    ids = [f"gone-{number:04}" for number in range(1500)]
    foreign.waiting(b"a")
    result = rwq("complete", "-", stdin="\n".join(["a", *ids]).encode())
    assert list(named(result.notes)) == ids[:5]
    assert result.notes.splitlines()[5:] == ["completed 1, missing 1,500"]


def test_json_names_the_first_failures(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    foreign.leased(b"17", holder=b"worker-3", ttl_ms=None)
    gone = [f"gone{number}" for number in range(9)]
    document = rwq("release", "-", "-o", "json", stdin=b"a\n17\n\xff\n").json
    assert document["failures"] == [
        {
            "id": "17",
            "id_b64": None,
            "code": "not-owner",
            "reason": "leased by worker-3 without expiry; --force ends its lease",
        },
        {"id": None, "id_b64": "/w==", "code": "missing", "reason": "no such item"},
    ]
    many = rwq("complete", *gone, "-o", "json").json
    assert [each["id"] for each in many["failures"]] == gone[:5]
    assert many["missing"] == 9
    assert rwq("complete", "a", "-o", "json").json["failures"] == []
