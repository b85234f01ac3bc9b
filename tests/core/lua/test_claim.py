"""Claims: the leases under which a clean or a verb keeps orphans to itself."""

from redis import Redis

from rwq_cli.core import WorkQueue
from tests.conftest import Foreign

CLAIM = b"rwq-clean:test"


def test_only_items_are_claimed(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    """A data key of another type may be a key of another queue."""
    foreign.data(b"orphan")
    raw.hset(b"jobs:item:hash", "field", "value")
    assert queue.run("claim", CLAIM, 5000, b"orphan", b"hash") == [b"orphan"]
    leases = sorted(raw.keys("jobs:lease*"))
    assert leases == [b"jobs:lease:orphan", b"jobs:leased_by_session:orphan"]
    assert raw.mget(leases) == [CLAIM, CLAIM]
