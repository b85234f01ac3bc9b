"""The line is cut at a byte of the request, or of the reply, of every verb on fifty items.

By default at a few bytes of each; `RWQ_CUTS=1` for every byte, `RWQ_CUTS=10` for every tenth.
At every byte of what acts, about 100,000 cuts found nothing.
"""

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.faults.verbs import VERBS, Stage, Verb, name_of
from tests.proxies import Line

_EVERY = int(os.environ.get("RWQ_CUTS", "0"))


def cuts(verb: Verb, length: int) -> Iterable[int]:
    """After which bytes to cut: by default some in the last call, which acts."""
    if _EVERY:
        return range(0, length, _EVERY)
    if verb.done is None:
        return [length // 2]
    return sorted({length // 3, *(length - back for back in (150, 30, 1) if back <= length)})


@pytest.mark.parametrize("verb", VERBS, ids=name_of)
def test_a_cut_loses_nothing_and_is_reported(stage: Stage, verb: Verb) -> None:
    stage.arrange(verb)
    # From now on the server has the scripts, so that every run has the same lengths.
    stage.run(verb)
    stage.arrange(verb)
    with Line() as whole:
        result = stage.run(verb)
    assert stage.check(verb, result) == "done"
    counts: Counter[str] = Counter()
    for side in ("up", "down"):
        for after_bytes in cuts(verb, whole.passed[side]):
            stage.arrange(verb)
            with Line(side, after_bytes):
                result = stage.run(verb)
            try:
                counts[stage.check(verb, result)] += 1
            except AssertionError:
                print(f"cut {side} after {after_bytes} of {whole.passed[side]} bytes")
                raise
    print(name_of(verb), dict(counts), whole.passed)
