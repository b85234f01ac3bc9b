"""Counting the states that only a walk over the whole queue finds."""

from collections.abc import Sequence

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.foreign_keys import find_wrong_keys, may_be_in_nested_queue
from rwq_cli.core.inspect.nested_queues import exclude_nested_queues
from rwq_cli.core.inspect.results import ResultCount
from rwq_cli.core.inspect.survey import Totals, survey
from rwq_cli.core.model import Counts, State
from rwq_cli.core.state.probe import states


def with_survey(queue: Queue, known: Counts) -> tuple[Counts, frozenset[bytes]]:
    """Add the counts that need a walk; also return the duplicated items."""
    totals, others = Totals(), _OtherKeys(queue)
    found = survey(queue, others.add, totals)
    ghosts = found.ghosts
    known = known._replace(
        returned=totals.returned,
        held=len(found.held),
        orphaned=len(found.orphaned),
        unlisted=len(found.unlisted),
        duplicated=len(found.duplicated),
        ghosts=len(ghosts),
        stray_leases=others.count_stray_leases(ghosts),
        wrong_types=find_wrong_keys(queue).wrong_type.count,
        returns=totals.returns,
        results=others.count_results(),
    )
    return known, frozenset(found.duplicated)


class _OtherKeys:
    """Counts stray leases and results in a walk over all keys.

    Keys may belong to a queue whose name begins like this queue's lease or result keys.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._stray: set[bytes] = set()
        self._results: ResultCount | None = ResultCount(queue)

    def add(self, page: Sequence[bytes]) -> None:
        """Count a page of keys."""
        queue, keys = self._queue, self._queue.keys
        for prefix in (keys.lease_prefix, keys.old_lease_prefix):
            ids = [i for i in _ids_in(page, prefix) if not may_be_in_nested_queue(i)]
            self._stray.update(_stray_among(queue, ids))
        ids = _ids_in(page, keys.result_prefix)
        if ids and self._results is not None:
            try:
                self._results.add(exclude_nested_queues(queue, ids, (keys.result_prefix,)))
            except PermissionDenied:
                self._results = None

    def count_stray_leases(self, ghosts: set[bytes]) -> int:
        """How many IDs have a lease but no data, and are not among these ghosts."""
        return len(_stray_among(self._queue, list(self._stray - ghosts)))

    def count_results(self) -> int | None:
        """How many results there are; None if this user may not read them."""
        return None if self._results is None else self._results.results


def _stray_among(queue: Queue, ids: Sequence[bytes]) -> list[bytes]:
    found = zip(ids, states(queue, ids), strict=True)
    return [item_id for item_id, state in found if state is State.STRAY_LEASE]


def _ids_in(page: Sequence[bytes], prefix: bytes) -> list[bytes]:
    return [key[len(prefix) :] for key in page if key.startswith(prefix)]
