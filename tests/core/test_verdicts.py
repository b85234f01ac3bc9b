"""A verdict depends on the facts about an ID, not on how many others there are or are named."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.purge import count_items
from rwq_cli.core.keys import QueueKeys
from tests.broken_queues import make_broken, pad, traces
from tests.core.operations import LOOKS, Operation
from tests.long import IS_LONG, usual
from tests.verbs import HEAVIEST, OPERATIONS

IDS = [b"id-%d" % number for number in range(25)]
ALL = {**LOOKS, **OPERATIONS}
_THOUSANDS = usual(1_500, long=50_000)
_SEEDS = usual(1, long=100)
# What is said of each ID, and all that is left of it.
Verdicts = tuple[dict[bytes, list[Any]], dict[bytes, Any]]
Pad = Callable[[redis.Redis, QueueKeys, int, int], list[bytes]]


def _pad_broken(
    raw: redis.Redis, keys: QueueKeys, count: int, first: int, *, wrong_types: bool
) -> list[bytes]:
    """Like `pad`, with random facts: a clean and the doctor have them in their batches, too."""
    ids = [b"pad-%d" % number for number in range(first, first + count)]
    make_broken(raw, keys, ids, first, wrong_types=wrong_types)
    return ids


def _say(verb: Operation, queue: WorkQueue, ids: Sequence[bytes]) -> dict[bytes, list[Any]]:
    told = verb.run(queue, ids, False)
    said: dict[bytes, list[Any]] = {}
    for item_id, *what in told if verb.ordered else sorted(told, key=str):
        if item_id in IDS:
            said.setdefault(item_id, []).append(what)
    return said


def _run(
    name: str, queue: WorkQueue, raw: redis.Redis, seed: int, padding: int, like: Pad, named: str
) -> Verdicts:
    """The verdicts on the IDs beside so many others: named alone, with all, or one by one."""
    keys, verb = QueueKeys(queue.name), ALL[name]
    raw.flushall()
    others = like(raw, keys, padding // 2, 1)
    # A lease ends at the first data of another type, and takes nothing in that call.
    make_broken(raw, keys, IDS, seed, wrong_types=name != "lease")
    others += like(raw, keys, padding - padding // 2, padding // 2 + 1)
    if named == "one by one":
        said = {i: each for item_id in IDS for i, each in _say(verb, queue, [item_id]).items()}
    else:
        said = _say(verb, queue, [*IDS, *others] if named == "all" else IDS)
    return said, traces(raw, keys, IDS)


@pytest.mark.parametrize(
    "name", [*LOOKS, *(pytest.param(name, marks=pytest.mark.ci) for name in OPERATIONS)]
)
def test_a_verdict_does_not_depend_on_others(queue: WorkQueue, raw: redis.Redis, name: str) -> None:
    broken = partial(_pad_broken, wrong_types=name != "lease")
    # Up to 30 are looked for by name.
    likes: tuple[tuple[int, Pad], ...] = ((31, pad), (600, broken))
    if IS_LONG:
        likes += ((30, pad), (600, pad), (31, broken))
    takes_ids = ALL[name].takes_ids
    ways = [(*like, n) for like in likes for n in (("alone", "all") if takes_ids else ("alone",))]
    if takes_ids or name in ("lease by ID", "set data"):
        ways.append((600, pad, "one by one"))
    for seed in range(1, _SEEDS + 1):
        alone = _run(name, queue, raw, seed, 0, pad, "alone")
        verdicts = {way: _run(name, queue, raw, seed, *way) for way in ways}
        assert verdicts == dict.fromkeys(ways, alone), seed
    if name in OPERATIONS and name not in HEAVIEST and not IS_LONG:
        return
    alone = _run(name, queue, raw, 7, 0, pad, "alone")
    assert _run(name, queue, raw, 7, _THOUSANDS, pad, "all") == alone, name


# What a deep count counts, and not what it measures.
_COUNTED = (
    *("waiting", "processing", "delayed", "buried", "returned", "leased", "held", "abandoned"),
    *("due", "orphaned", "unlisted", "duplicated", "ghosts", "stray_leases", "wrong_types"),
    *("returns", "results"),
)


@pytest.mark.parametrize("padding", [30, 31, 600, _THOUSANDS])
def test_the_counts_of_others_are_added(queue: WorkQueue, raw: redis.Redis, padding: int) -> None:
    keys = QueueKeys(queue.name)

    def counted() -> dict[str, int]:
        counts = queue.counts(deep=True)
        return {**{name: getattr(counts, name) for name in _COUNTED}, "items": count_items(queue)}

    make_broken(raw, keys, IDS, 1)
    alone = counted()
    pad(raw, keys, padding)
    together = counted()
    raw.flushall()
    pad(raw, keys, padding)
    assert together == {name: alone[name] + number for name, number in counted().items()}
