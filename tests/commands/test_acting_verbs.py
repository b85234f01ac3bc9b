"""What bury, complete, release and kick have in common: leases of others, and questions."""

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")


# The question is one for all verbs that choose; these two choose from different states.
@pytest.mark.parametrize("verb", ["release", "kick"])
def test_of_a_thousand_that_options_choose_the_queue_has_to_be_named_on_a_terminal(
    rwq: Rwq, foreign: Foreign, verb: str
) -> None:
    ids = [b"%d" % number for number in range(1000)]
    foreign.data(*ids)
    if verb == "kick":
        foreign.raw.zadd("jobs:buried", dict.fromkeys(ids, 1))
        foreign.lease(*ids, holder=b"rwq-buried:x", ttl_ms=None)
    else:
        foreign.raw.lpush("jobs:processing", *ids)
    before = contents(foreign.raw)
    asked = b"Type the queue's name to continue: "
    code, seen = rwq.asked(verb, "--all", type_in=[(asked, b"other\n")])
    said = f"rwq will {verb} 1,000 items of jobs "
    assert (code, said in " ".join(seen.decode().split())) == (1, True)
    assert contents(foreign.raw) == before
    # Fewer, or where nobody can be asked, they are not.
    assert rwq.asked(verb, "-n", "999", type_in=[])[0] == 0
    assert rwq(verb, "--all").code == 0
