"""Items whose guard proves nothing: they go onto main unless a cleaner had returned them."""

from typing import Literal

import pytest
from redis import Redis
from rwq_cli.core.items.reconcile import Settled, reconcile

from rwq_cli.core import WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Foreign, Interleaved, contents


def parked(foreign: Foreign, which: str, *ids: bytes) -> None:
    """Due or buried items that have lost their guards."""
    for item_id in ids:
        if which == "delayed":
            foreign.delayed(item_id, 1)
        else:
            foreign.buried(item_id)
        foreign.raw.delete(foreign.keys.lease(item_id), foreign.keys.old_lease(item_id))


@pytest.mark.parametrize("which", ["delayed", "buried"])
class TestSettle:
    def test_the_lists_decide(
        self,
        queue: WorkQueue,
        keys: QueueKeys,
        raw: Redis,
        foreign: Foreign,
        which: Literal["delayed", "buried"],
    ) -> None:
        parked(foreign, which, b"a", b"b", b"c", b"d")
        raw.lpush(keys.main, b"b")
        raw.lpush(keys.processing, b"d")
        raw.hset(keys.returns, mapping={b"a": 2, b"b": 2})  # type: ignore[arg-type]
        assert list(reconcile(queue, which, [b"c", b"b", b"a", b"d"])) == [
            Settled([b"c", b"a"], []),
            Settled([], [b"b", b"d"]),
        ]
        assert raw.lrange(keys.main, 0, -1) == [b"a", b"c", b"b"]
        assert raw.lrange(keys.processing, 0, -1) == [b"d"]
        assert raw.exists(keys.delayed, keys.buried) == 0
        assert raw.keys("jobs:lease*") == []
        # A kick gives all chances again; a delay that has passed does not.
        kept = {b"b": b"2"} if which == "buried" else {b"a": b"2", b"b": b"2"}
        assert raw.hgetall(keys.returns) == kept

    def test_also_far_down_in_a_list(
        self,
        queue: WorkQueue,
        keys: QueueKeys,
        raw: Redis,
        foreign: Foreign,
        which: Literal["delayed", "buried"],
    ) -> None:
        parked(foreign, which, b"a", b"b")
        for key, item_id in ((keys.main, b"a"), (keys.processing, b"b")):
            raw.lpush(key, item_id, *(b"other %d" % number for number in range(600)))
        before = raw.llen(keys.main)
        assert list(reconcile(queue, which, [b"a", b"b"])) == [Settled([], [b"a", b"b"])]
        assert raw.llen(keys.main) == before
        assert raw.exists(keys.delayed, keys.buried) == 0

    def test_without_an_entry_or_data_nothing_is_done(
        self,
        queue: WorkQueue,
        keys: QueueKeys,
        raw: Redis,
        foreign: Foreign,
        which: Literal["delayed", "buried"],
    ) -> None:
        foreign.data(b"o")
        parked(foreign, which, b"gone")
        raw.delete(keys.item(b"gone"))
        before = contents(raw)
        assert list(reconcile(queue, which, [b"o", b"gone"])) == []
        assert contents(raw) == before

    def test_completed_meanwhile(
        self,
        interleaved: Interleaved,
        keys: QueueKeys,
        raw: Redis,
        foreign: Foreign,
        which: Literal["delayed", "buried"],
    ) -> None:
        parked(foreign, which, b"a", b"b")

        def complete(name: str) -> None:
            if name == "settle_scheduled":
                raw.delete(keys.item(b"a"))

        interleaved.before = complete
        assert list(reconcile(WorkQueue(interleaved, QUEUE), which, [b"a", b"b"])) == [
            Settled([b"b"], [b"a"])
        ]
        assert contents(raw) == {keys.main: [b"b"], keys.item(b"b"): b"data of b"}

    def test_put_away_anew_meanwhile(
        self,
        interleaved: Interleaved,
        keys: QueueKeys,
        raw: Redis,
        foreign: Foreign,
        which: Literal["delayed", "buried"],
    ) -> None:
        """By a bury or a release with --force: its entry is the new one."""
        parked(foreign, which, b"a", b"b")

        def put_away(name: str) -> None:
            if name == "settle_scheduled":
                if which == "delayed":
                    foreign.delayed(b"a", 10**13)
                else:
                    foreign.buried(b"a", b"again")

        interleaved.before = put_away
        (settled,) = reconcile(WorkQueue(interleaved, QUEUE), which, [b"a", b"b"])
        assert settled.pushed == [b"b"]
        zset = keys.delayed if which == "delayed" else keys.buried
        assert raw.zrange(zset, 0, -1) == [b"a"]
        assert raw.exists(keys.lease(b"a"), keys.old_lease(b"a")) == 2
        assert raw.lrange(keys.main, 0, -1) == [b"b"]
