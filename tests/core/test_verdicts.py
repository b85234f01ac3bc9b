"""A verdict depends on the facts about an ID, not on how many others there are or are named."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.keys import QueueKeys
from tests.broken_queues import make_broken, pad, traces

IDS = [b"id-%d" % number for number in range(25)]

# What a verb says of each ID, in words. A clean or the doctor says nothing of what it leaves alone.
Verdicts = dict[bytes, Any]
Verb = Callable[[WorkQueue, Sequence[bytes]], Verdicts]


def _outcomes(name: str, **options: Any) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
        return {
            outcome.item_id: (outcome.status.value, outcome.holder)
            for outcome in getattr(queue, name)(list(ids), **options)
        }

    return verb


def _actions(name: str, **options: Any) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
        found: Verdicts = {}
        for action in getattr(queue, name)(**options):
            told = (action.action.value, action.state.value, action.where)
            found.setdefault(action.item_id, set()).add(told)
        return found

    return verb


def _diagnose(fix: bool) -> Verb:
    def verb(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:  # noqa: ARG001
        found: Verdicts = {}
        for finding in queue.diagnose(fix=fix, all_ids=True).findings:
            for item_id in () if finding.of_keys else finding.examples:
                found.setdefault(item_id, set()).add(finding.code.value)
        return found

    return verb


def _states(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    return {report.facts.item_id: report.facts.state for report in queue.inspect_items(list(ids))}


def _lease_by_id(queue: WorkQueue, ids: Sequence[bytes]) -> Verdicts:
    named = [item_id for item_id in ids if item_id in IDS]
    return {
        attempt.item.item_id: (attempt.is_leased, None if attempt.is_leased else attempt.item.state)
        for attempt in queue.lease_ids(named)
    }


VERBS: dict[str, Verb] = {
    "states": _states,
    "complete": _outcomes("complete"),
    "complete by owner": _outcomes("complete", owner=b"them"),
    "touch": _outcomes("touch"),
    "release": _outcomes("release"),
    "release by force": _outcomes("release", force=True),
    "release one's own": _outcomes("release", own_only=True),
    "release to the front": _outcomes("release", front=True),
    "release later": _outcomes("release", delay_s=1000),
    "bury": _outcomes("bury"),
    "bury by force": _outcomes("bury", force=True, reason=b"because"),
    "kick": _outcomes("kick"),
    "remove": _outcomes("remove", journal=NoJournal()),
    "move": _outcomes("move", to=b"other", journal=NoJournal()),
    "move by force": _outcomes("move", to=b"other", journal=NoJournal(), force=True),
    "lease by ID": _lease_by_id,
    "light clean": _actions("light_clean"),
    "light clean that buries": _actions("light_clean", bury_after=2),
    "deep clean": _actions("deep_clean"),
    "deep clean that buries": _actions("deep_clean", bury_after=2),
    "diagnosis": _diagnose(fix=False),
    "doctor's repairs": _diagnose(fix=True),
}
# What takes no IDs, or leases only those that are named.
OF_ALL = {name for name in VERBS if "clean" in name or "doc" in name or "diag" in name}
OF_ALL |= {"lease by ID"}
PADDINGS = (30, 31, 600)
# RWQ_ITEMS=50000 for the long run.
_THOUSANDS = int(os.environ.get("RWQ_ITEMS", "5000"))


def _run(
    verb: Verb, queue: WorkQueue, raw: redis.Redis, seed: int, padding: int, names_all: bool
) -> tuple[Verdicts, dict[bytes, Any]]:
    """The verdicts on the IDs, and what is left of them, in a queue with this many other items."""
    keys = QueueKeys(queue.name)
    raw.flushall(asynchronous=False)
    others = pad(raw, keys, padding // 2)
    make_broken(raw, keys, IDS, seed)
    others += pad(raw, keys, padding - padding // 2, padding // 2 + 1)
    said = verb(queue, [*IDS, *others] if names_all else IDS)
    verdicts = {item_id: said[item_id] for item_id in IDS if item_id in said}
    return verdicts, traces(raw, keys, IDS)


def _cases() -> Iterator[Any]:
    for name in VERBS:
        for seed in (1, 2):
            yield pytest.param(name, seed, id=f"{name}-{seed}")


@pytest.mark.parametrize(("name", "seed"), list(_cases()))
def test_a_verdict_does_not_depend_on_how_many_others_there_are(
    queue: WorkQueue, raw: redis.Redis, name: str, seed: int
) -> None:
    verb = VERBS[name]
    alone = _run(verb, queue, raw, seed, 0, names_all=False)
    for padding in PADDINGS:
        for names_all in (False,) if name in OF_ALL else (False, True):
            assert _run(verb, queue, raw, seed, padding, names_all) == alone, (padding, names_all)


@pytest.mark.parametrize("name", VERBS)
def test_a_verdict_is_the_same_among_thousands(
    queue: WorkQueue, raw: redis.Redis, name: str
) -> None:
    alone = _run(VERBS[name], queue, raw, 7, 0, names_all=False)
    assert _run(VERBS[name], queue, raw, 7, _THOUSANDS, names_all=True) == alone


@pytest.mark.parametrize(
    "name", [name for name in VERBS if "clean" not in name and "doc" not in name]
)
def test_a_verdict_is_the_same_for_one_id_as_for_all(
    queue: WorkQueue, raw: redis.Redis, name: str
) -> None:
    keys = QueueKeys(queue.name)
    verb = VERBS[name]
    together, left = _run(verb, queue, raw, 5, 600, names_all=False)
    raw.flushall(asynchronous=False)
    pad(raw, keys, 600)
    make_broken(raw, keys, IDS, 5)
    one_by_one: Verdicts = {}
    for item_id in IDS:
        one_by_one |= verb(queue, [item_id])
    assert one_by_one == together
    assert traces(raw, keys, IDS) == left
