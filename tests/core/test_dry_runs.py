"""A dry run is the run without its writes: it says the same, and changes nothing."""

import pytest
import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.broken_queues import make_broken, pad
from tests.conftest import HOLDER, QUEUE, Foreign
from tests.everything import everything
from tests.item_cases import ITEM_CASES
from tests.long import usual
from tests.verbs import HEAVIEST, OPERATIONS

_THOUSANDS = usual(1_200, long=20_000)
_SEEDS = usual(1, long=50)


def _arrange_by_hand(foreign: Foreign, verb: str) -> list[bytes]:
    """One ID in each state that has a name, and a few more."""
    # A lease stops at the first data of another type.
    cases = {
        name: case for name, case in ITEM_CASES.items() if verb != "lease" or "hash" not in name
    }
    for name, case in cases.items():
        case.make(foreign, name.encode())
    foreign.waiting(b"", b"\x00\xff")
    foreign.leased(b"mine", holder=HOLDER)
    foreign.leased(b"mine by 0.2", holder=HOLDER, generations="new")
    foreign.abandoned(b"mine")
    return [*(name.encode() for name in cases), b"", b"\x00\xff", b"mine", b"never"]


def _arrange(raw: redis.Redis, verb: str, count: int, seed: int) -> list[bytes]:
    """A queue of this many items, at most 400 of them with random facts."""
    keys = QueueKeys(QUEUE)
    raw.flushall()
    ids = [b"id-%d" % number for number in range(min(count, 400))]
    make_broken(raw, keys, ids, seed, wrong_types=verb != "lease")
    return ids + pad(raw, keys, count - len(ids))


def _assert_the_run_does_what_the_dry_run_says(
    queue: WorkQueue, raw: redis.Redis, name: str, ids: list[bytes], *, ordered: bool = True
) -> None:
    before, verb = everything(raw), OPERATIONS[name]
    foreseen = verb.run(queue, ids, True)
    assert everything(raw) == before, name
    done = verb.run(queue, ids, False)
    if not (verb.ordered and ordered):
        foreseen, done = sorted(foreseen, key=str), sorted(done, key=str)
    assert done == foreseen, name


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_dry_run_on_each_kind_is_the_run(
    queue: WorkQueue, raw: redis.Redis, foreign: Foreign, name: str
) -> None:
    ids = _arrange_by_hand(foreign, name)
    _assert_the_run_does_what_the_dry_run_says(queue, raw, name, ids)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, 25) for name in OPERATIONS),
        *(pytest.param(name, 400, marks=pytest.mark.ci) for name in OPERATIONS),
        *(pytest.param(name, _THOUSANDS, marks=pytest.mark.ci) for name in HEAVIEST),
    ],
)
def test_a_dry_run_on_a_broken_queue_is_the_run(
    queue: WorkQueue, raw: redis.Redis, name: str, count: int
) -> None:
    for seed in range(1, 2 if count == _THOUSANDS else _SEEDS + 1):
        ids = _arrange(raw, name, count, seed)
        # Second entries go, which moves those of others to another page.
        _assert_the_run_does_what_the_dry_run_says(
            queue, raw, name, ids, ordered=count < _THOUSANDS
        )


@pytest.mark.needs("no-touch")
def test_no_dry_run_counts_as_use(queue: WorkQueue, raw: redis.Redis) -> None:
    ids = _arrange(raw, "lease", 60, 1)
    # This client's own looks are no use of a key.
    raw.execute_command("CLIENT", "NO-TOUCH", "ON")
    for key in [*raw.scan_iter()]:
        left_ms = max(0, raw.pttl(key))
        raw.restore(key, left_ms, raw.dump(key) or b"", replace=True, idletime=1000)
    for name, verb in OPERATIONS.items():
        verb.run(queue, ids, True)
        assert min(raw.object("IDLETIME", key) for key in raw.scan_iter()) >= 1000, name
