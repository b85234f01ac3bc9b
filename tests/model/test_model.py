"""The guarantees of the protocol, over every interleaving of a few programs on two items.

Of three programs to a depth of a few commands; of two, and of two cleans and a worker, to the end
of all. By default some casts, so that every two programs meet; `RWQ_MODEL_DEPTH` sets the depth,
and takes every cast. What that came to:

RESULTS
"""

import os
from collections import Counter

import pytest
import redis

from tests.model.casts import ABANDONED, BEGINNINGS, TRIOS, casts, duels, pairs_of_casts
from tests.model.checker import SCRIPTS, Checker, Violation
from tests.model.keys import Frozen
from tests.model.programs import Cast
from tests.model.real import differences
from tests.model.scripts import MUTATIONS

_DEPTH = int(os.environ.get("RWQ_MODEL_DEPTH", "0"))
_SOME_STEPS = 7
# More than these programs send.
_TO_THE_END = 100


def explore_all(checker: Checker, depth: int, *, every: bool = False) -> Counter[str]:
    """Explore casts from every beginning; the counts."""
    counts: Counter[str] = Counter()
    depths = dict.fromkeys(casts(ours=True) if every else pairs_of_casts(), depth)
    depths |= dict.fromkeys(duels(every=every), _TO_THE_END)
    runs = [(keys, cast, _TO_THE_END) for cast in TRIOS for keys in ABANDONED]
    runs += [(keys, cast, steps) for cast, steps in depths.items() for keys in BEGINNINGS.values()]
    for keys, cast, steps in runs:
        found = checker.explore(keys, cast, steps)
        counts.update(states=found.states, steps=found.steps, complete=found.complete, runs=1)
    return counts


@pytest.fixture(scope="module")
def checker() -> Checker:
    """One that has explored everything."""
    made = Checker()
    counts = explore_all(made, _DEPTH or _SOME_STEPS, every=_DEPTH > 0)
    print(dict(counts), {"different steps": len(made.effects)})
    return made


def test_no_interleaving_breaks_a_guarantee(checker: Checker) -> None:
    met = {command[0] for _, command in checker.effects}
    assert met >= SCRIPTS, "a script was never run"


def test_our_scripts_do_in_every_state_what_the_model_says(
    checker: Checker, raw: redis.Redis
) -> None:
    """Every state in which the model runs one of them is put on a real server."""
    known: set[tuple[Frozen, Cast]] = set()
    effects = []
    for (keys, command), effect in checker.effects.items():
        if command[0] in SCRIPTS | {"states"} and (keys[:11], command) not in known:
            known.add((keys[:11], command))
            effects.append(((keys, command), effect))
    assert differences(raw, effects) == []
    print({"states compared": len(effects)})


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_defect_is_found(mutation: str) -> None:
    with pytest.raises(Violation) as caught:
        explore_all(Checker(mutation), _SOME_STEPS)
    print(caught.value)
