"""While a slot moves, no verb takes a key that has moved for one that is missing.

Usually with some of the verbs; with `--long` each, and each share of the keys on either node.
"""

import re
from collections.abc import Callable
from threading import Thread

import pytest

from rwq_cli.core.keys import QueueKeys
from tests.clusters import Moving, PrivateCluster
from tests.conftest import Foreign
from tests.driver import Result
from tests.faults.verbs import VERBS, Stage, Verb, name_of
from tests.long import usual

# Of the keys of the slot, in order, those that have moved.
_SHARES = {
    "none": slice(0),
    "these": slice(0, None, 2),
    "those": slice(1, None, 2),
    "all": slice(None),
}
_ALL = [(verb, share) for verb in VERBS for share in _SHARES]
_CASES = _ALL[:: usual(9, long=1)]
_READS = (
    *("ls -n 0 -o jsonl", "ls all --deep -n 0 -o ids", "show {ids} -o ids", "leases -o jsonl"),
    *("stats --deep -o json", "queues -o json", "export", "doctor --grace 0 -o json"),
    *("check --warn abandoned=1 --deep", "ls --match x -n 0 -o ids", "queues *"),
)
# What differs from one run to the next: times, and what depends on the order of a scan.
_VARYING = re.compile(
    r'"(\w+_ms|\w+_seconds|examples|examples_b64)": ?(\[.*?\]|[\d.]+|null)|oldest \d+s|age=\d+s'
)


def said(result: Result) -> tuple[int, list[str]]:
    """What it came to: the exit code, and the lines of its output in some order."""
    return result.code, sorted(_VARYING.sub("", result.text).splitlines())


@pytest.mark.parametrize(
    ("verb", "share"), _CASES, ids=[f"{share} moved: {name_of(verb)}" for verb, share in _CASES]
)
def test_a_verb_waits_until_the_slot_has_moved_and_does_nothing_before(
    stage_on: Callable[[str], Stage], shared_cluster: PrivateCluster, verb: Verb, share: str
) -> None:
    stage = stage_on("cluster")
    stage.arrange(verb)
    before = stage.look()
    moving = Moving(shared_cluster, stage.name.decode())
    moving.move(_SHARES[share])
    result = stage.run(verb, "--patience", "50ms")
    moving.cancel()
    if result.code == 69:
        assert "is moving this queue to another node of its cluster" in result.notes
        # An export has begun with what is there of every file.
        assert len(result.lines) <= ("export" in verb.words)
        assert stage.look() == before
    else:
        # It needed no key that had moved.
        assert not verb.done
        assert said(result) == said(stage.run(verb))


def test_what_is_read_while_many_keys_move_is_what_was_there(
    stage_on: Callable[[str], Stage], shared_cluster: PrivateCluster
) -> None:
    stage = stage_on("cluster")
    ids = [b"%d" % number for number in range(1000)]
    foreign = Foreign(stage.raw, stage.name)
    foreign.waiting(*ids[:600])
    foreign.abandoned(*ids[600:900])
    keys = QueueKeys(stage.name)
    stage.raw.mset({keys.item(item_id): b"x" for item_id in ids[900:]})
    for item_id in ids[700:900]:
        stage.raw.set(keys.lease(item_id), b"them", px=10_000_000)
    some = " ".join(str(number) for number in range(0, 1000, 50))
    lines = [line.format(ids=some).split() for line in _READS]
    expected = [said(stage.rwq(*words)) for words in lines]
    moving = Moving(shared_cluster, stage.name.decode())
    mover = Thread(target=moving.finish, kwargs={"pause_s": 0.02})
    mover.start()
    while mover.is_alive():
        assert [said(stage.rwq(*words)) for words in lines] == expected
    mover.join()
    assert [said(stage.rwq(*words)) for words in lines] == expected
