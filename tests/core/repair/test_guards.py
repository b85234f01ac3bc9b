"""Guards that were lost, or of which one name's is left, are set anew."""

import pytest
from redis import Redis
from rwq_cli.core.repair.guards import LOST_REASON, Guarded, find_unguarded, restore_guards

from rwq_cli.core import WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Foreign, Interleaved, contents, seconds_left

FAR_MS = 10**13


def put_away(foreign: Foreign) -> None:
    """One of each kind that is in no list."""
    for item_id in (b"d whole", b"d new", b"d old", b"d none", b"d session", b"d short"):
        foreign.delayed(item_id, FAR_MS)
    for item_id in (b"b whole", b"b new", b"b old", b"b none", b"b session", b"b gone"):
        foreign.buried(item_id)
    raw, keys = foreign.raw, foreign.keys
    for kind in (b"d ", b"b "):
        raw.delete(keys.old_lease(kind + b"new"), keys.lease(kind + b"old"))
        raw.delete(keys.lease(kind + b"none"), keys.old_lease(kind + b"none"))
        foreign.lease(kind + b"session", generations="old")
    raw.delete(keys.item(b"b gone"), keys.lease(b"b gone"))


def test_what_is_found(queue: WorkQueue, foreign: Foreign) -> None:
    put_away(foreign)
    lost = ("new", "old", "none")
    assert find_unguarded(queue) == {
        **{b"d %s" % name.encode(): "delayed" for name in lost},
        **{b"b %s" % name.encode(): "buried" for name in lost},
    }


def test_both_names_are_guarded_again(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    put_away(foreign)
    entries = (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1))
    names = (keys.lease(b"d whole"), keys.old_lease(b"b session"))
    before = [raw.get(name) for name in names]

    unguarded = find_unguarded(queue)
    assert restore_guards(queue, unguarded) == Guarded(list(unguarded), [])

    assert find_unguarded(queue) == {}
    for item_id in (b"d new", b"d old", b"d none"):
        both = (keys.lease(item_id), keys.old_lease(item_id))
        assert raw.mget(both) == [b"rwq-delayed:%d" % FAR_MS] * 2
        assert min(seconds_left(raw, *both)) > 60
    for item_id, reason in ((b"b new", b"broken"), (b"b old", b"broken"), (b"b none", LOST_REASON)):
        both = (keys.lease(item_id), keys.old_lease(item_id))
        assert raw.mget(both) == [b"rwq-buried:" + reason] * 2
        assert [raw.pttl(name) for name in both] == [-1, -1]
    assert (raw.zrange(keys.delayed, 0, -1), raw.zrange(keys.buried, 0, -1)) == entries
    assert [raw.get(name) for name in names] == before


def test_nothing_is_done_to_what_was_taken_meanwhile(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    foreign.buried(b"a")
    raw.delete(keys.old_lease(b"a"))
    unguarded = find_unguarded(queue)
    raw.lpush(keys.main, b"a")
    before = contents(raw)
    foreign.lease(b"a", generations="old")
    assert restore_guards(queue, [*unguarded, b"never"]).anew == []
    raw.delete(keys.old_lease(b"a"))
    assert contents(raw).keys() <= before.keys()


@pytest.mark.parametrize("which", ["delayed", "buried"])
def test_what_a_cleaner_brought_back_before_loses_its_entry(
    interleaved: Interleaved, keys: QueueKeys, raw: Redis, foreign: Foreign, which: str
) -> None:
    """It was pushed so long ago that it is not among the newest of main any more."""
    if which == "delayed":
        foreign.delayed(b"a", FAR_MS)
    else:
        foreign.buried(b"a")
    raw.delete(keys.old_lease(b"a"))
    pushed = False

    def push(name: str) -> None:
        nonlocal pushed
        if name == "reschedule" and not pushed:
            pushed = True
            raw.lpush(keys.main, b"a", *(b"%d" % number for number in range(600)))
            raw.mset({keys.item(b"%d" % number): b"x" for number in range(600)})

    interleaved.before = push
    actions = list(WorkQueue(interleaved, QUEUE).deep_clean(grace_s=0))
    assert [(a.item_id, str(a.action), a.where) for a in actions] == [(b"a", "pruned", which)]
    assert raw.exists(keys.delayed, keys.buried, keys.lease(b"a"), keys.old_lease(b"a")) == 0
    assert raw.lrange(keys.main, 0, -1).count(b"a") == 1


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_deep_clean_mends_what_a_late_worker_took(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign, dry_run: bool
) -> None:
    """It had popped the item, and set its lease only when a clean had buried it already."""
    foreign.buried(b"a", b"returned 3 times")
    foreign.lease(b"a", holder=b"session", generations="old")
    assert list(queue.deep_clean(grace_s=0, dry_run=dry_run)) == []
    assert raw.get(keys.old_lease(b"a")) == b"session"
    raw.delete(keys.old_lease(b"a"))
    assert list(queue.deep_clean(grace_s=0, dry_run=dry_run)) == []
    assert raw.get(keys.old_lease(b"a")) == (None if dry_run else b"rwq-buried:returned 3 times")
