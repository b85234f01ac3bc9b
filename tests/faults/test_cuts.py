"""The line is cut at a byte of the request, or of the reply, of every verb on fifty items.

Usually at a few bytes of each; with `--long` at every tenth, each on one server, behind Sentinel,
on a cluster and between two servers.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.faults.verbs import (
    MOVE_TO_ANOTHER_SERVER,
    MOVE_TO_ANOTHER_SLOT,
    SOME_VERBS,
    VERBS,
    Stage,
    Verb,
    name_of,
)
from tests.long import usual
from tests.proxies import Line

_EVERY = usual(0, long=10)
_CASES = (
    *(("server", verb) for verb in VERBS),
    *(("sentinel", verb) for verb in SOME_VERBS),
    *(("cluster", verb) for verb in (*SOME_VERBS, MOVE_TO_ANOTHER_SLOT)),
    ("servers", MOVE_TO_ANOTHER_SERVER),
)


def cuts(kind: str, verb: Verb, side: str, length: int) -> Iterable[int]:
    """After which bytes to cut: by default some in the last call, which acts.

    Of its request one is as good as any: the server does not do what it has not read to the end.
    """
    if _EVERY:
        return range(0, length, _EVERY)
    if kind == "servers":
        # Every step of it acts.
        return range(length // 12, length, length // 12)
    if verb.done is None:
        return [length // 2]
    if kind != "server":
        return [max(0, length - 30)]
    from_end = (1,) if side == "up" else (150, 30, 1)
    return sorted({length // 3, *(length - back for back in from_end if back <= length)})


@pytest.mark.parametrize(
    ("kind", "verb"), _CASES, ids=[f"{kind}: {name_of(verb)}" for kind, verb in _CASES]
)
def test_a_cut_loses_nothing_and_is_reported(
    stage_on: Callable[[str], Stage], kind: str, verb: Verb
) -> None:
    stage = stage_on(kind)
    stage.arrange(verb)
    # From now on the server has the scripts, so that every run has the same lengths.
    stage.run(verb)
    stage.arrange(verb)
    with Line() as whole:
        result = stage.run(verb)
    assert stage.check(verb, result) == "done"
    counts: Counter[str] = Counter()
    for side in ("up", "down"):
        for after_bytes in cuts(kind, verb, side, whole.passed[side]):
            stage.arrange(verb)
            with Line(side, after_bytes) as line:
                result = stage.run(verb)
            try:
                counts[stage.check(verb, result) if line.is_cut else "too short"] += 1
            except AssertionError:
                print(f"cut {side} after {after_bytes} of {whole.passed[side]} bytes")
                raise
    print(kind, name_of(verb), dict(counts), whole.passed)
