"""The server's longest single calls, against the longest LREM of the same run."""

from collections.abc import Mapping, Sequence

from benchmarks.filling import QUEUE, new_ids
from benchmarks.results import Row, Unit
from benchmarks.server import BenchServer
from benchmarks.turn import Case, LongestCall

LIST_LENGTH = 1_000_000
# The longest of one LREM is its only one; of many calls it is an unlucky one, as with rwq's.
_CALLS = 20
_LIMIT = 1.5
_MILLISECONDS = Unit("ms", digits=1)
_KEY = f"{QUEUE}:queue"


def fill_list(server: BenchServer) -> None:
    """Fill the list for `longest_lrem_ms`."""
    pipeline = server.client.pipeline(transaction=False)
    for _ in range(LIST_LENGTH // 10_000):
        pipeline.lpush(_KEY, *new_ids(10_000))
    pipeline.execute()


def longest_lrem_ms(server: BenchServer) -> float:
    """The longest of a few LREMs of an ID that is not in the list."""
    server.reset_counters()
    for item_id in new_ids(_CALLS):
        server.client.lrem(_KEY, 0, item_id)
    return server.longest_call()[0]


def longest_rows(
    calls: Mapping[Case, Sequence[LongestCall]], lrems_ms: Sequence[float]
) -> list[Row]:
    """The rows of one program: its longest call over all cases, and those of the largest cases.

    Of the turns of one case the best counts: other processes can only make a call longer.

    Args:
        calls: By case, the longest call of each turn.
        lrems_ms: The longest LREM before each turn.
    """
    best = {case: min(turns, key=_milliseconds) for case, turns in calls.items()}
    others = [call for case, call in best.items() if not case.own_longest_call]
    rows = [
        _row(f"longest call, {case.title}", call, lrems_ms)
        for case, call in best.items()
        if case.own_longest_call
    ]
    if others:
        rows.append(_row("longest call, all other cases", max(others, key=_milliseconds), lrems_ms))
    return rows


def _milliseconds(call: LongestCall) -> float:
    return call.milliseconds


def _row(name: str, call: LongestCall, lrems_ms: Sequence[float]) -> Row:
    return Row(
        name=name,
        unit=_MILLISECONDS,
        value=call.milliseconds,
        reference=f"LREM over {LIST_LENGTH:,}",
        reference_value=_reference_ms(lrems_ms),
        limit=_LIMIT,
        note=call.command,
    )


def _reference_ms(lrems_ms: Sequence[float]) -> float:
    """The median: half of the turns had a longer one, and half a shorter one."""
    return sorted(lrems_ms)[len(lrems_ms) // 2]
