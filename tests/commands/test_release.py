"""`rwq release`: back into the queue now; another session's lease only with --force, and asking."""

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")


def test_without_ids_all_of_it_is(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"theirs")
    foreign.leased(b"glob", holder=b"rwq:tester@*:s1")
    for later in ((), ("--delay", "1h"), ("--front",)):
        foreign.waiting(b"a", b"b", b"c")
        rwq("lease", "-n", "2")
        before = contents(foreign.raw)
        dry = rwq("release", "--mine", "--dry-run", "-o", "ids", *later)
        assert (sorted(dry.text.split()), contents(foreign.raw)) == (["a", "b"], before)
        result = rwq("release", "--mine", "-o", "ids", *later)
        assert (result.code, sorted(result.text.split())) == (0, ["a", "b"])
        assert sorted(rwq("leases", "-o", "ids").text.split()) == ["glob", "theirs"]
        rwq("rm", "a", "b", "c", "--yes")
    assert rwq("release", "--mine").code == 0
