"""The guarantees of the protocol, over every interleaving of a few programs on two items.

Of three programs to a depth of a few commands; of two, and of two cleans and a worker, to the end
of all. Usually some casts, so that every two programs meet; with `--long` every cast.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import product

import pytest
import redis

from tests.long import usual
from tests.model.casts import (
    ABANDONED,
    BEGINNINGS,
    TRIOS,
    casts,
    duels,
    other_duels,
    pairs_of_casts,
)
from tests.model.checker import SCRIPTS, Checker, Violation
from tests.model.keys import KEY_PARTS, Frozen
from tests.model.programs import Cast
from tests.model.real import differences
from tests.model.scripts import MUTATIONS

_DEPTH = usual(0, long=6)
_SOME_STEPS, _FEW_STEPS = 6, 5
# More than these programs send.
_TO_THE_END = 100
# What explores everything does so once.
IN_ONE_PROCESS = pytest.mark.xdist_group("checker")


def explore_all(checker: Checker, depth: int, *, every: bool = False) -> Counter[str]:
    """Explore casts from every beginning; the counts."""
    counts: Counter[str] = Counter()
    beginnings = tuple(BEGINNINGS.values())
    plan: list[tuple[Iterable[tuple[Cast, ...]], Iterable[Frozen], int]] = [
        (TRIOS, ABANDONED, _TO_THE_END),
        (casts() if every else pairs_of_casts(), beginnings, depth),
        (duels(every=every), beginnings, _TO_THE_END),
        (other_duels(), beginnings, _TO_THE_END if every else _FEW_STEPS),
    ]
    for some_casts, some_beginnings, steps in plan:
        for cast, keys in product(some_casts, some_beginnings):
            counts.update(states=checker.explore(keys, cast, steps), runs=1)
    return counts


@pytest.fixture(scope="module")
def checker() -> Checker:
    """One that has explored everything."""
    made = Checker()
    counts = explore_all(made, _DEPTH or _SOME_STEPS, every=_DEPTH > 0)
    print(dict(counts), {"different steps": len(made.effects)})
    return made


@IN_ONE_PROCESS
def test_no_interleaving_breaks_a_guarantee(checker: Checker) -> None:
    met = {command[0] for _, command in checker.effects}
    assert met >= SCRIPTS, "a script was never run"


@IN_ONE_PROCESS
@pytest.mark.needs("acl-check")
def test_our_scripts_do_what_the_model_says(checker: Checker, raw: redis.Redis) -> None:
    """Every state in which the model runs one of them is put on a real server."""
    known: set[tuple[Frozen, Cast]] = set()
    effects = []
    for (keys, command), effect in checker.effects.items():
        on_server = keys[: KEY_PARTS + 1]
        if command[0] in SCRIPTS | {"states"} and (on_server, command) not in known:
            known.add((on_server, command))
            effects.append(((keys, command), effect))
    assert differences(raw, effects) == []
    print({"states compared": len(effects)})


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_defect_is_found(mutation: str) -> None:
    with pytest.raises(Violation) as caught:
        explore_all(Checker(mutation), _SOME_STEPS)
    print(caught.value)
