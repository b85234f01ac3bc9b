"""Counting the states that only a walk over the whole queue finds."""

from collections.abc import Sequence

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.keyspace import ids_of, may_be_in_nested_queue, wrong_types
from rwq_cli.core.inspect.results import read_result_keys
from rwq_cli.core.inspect.survey import Totals, survey
from rwq_cli.core.keys import is_key_of, owner_of_structure
from rwq_cli.core.model import Counts, State
from rwq_cli.core.state.probe import states


def with_survey(queue: Queue, known: Counts) -> tuple[Counts, frozenset[bytes]]:
    """Add the counts that need a walk; also return the duplicated items."""
    totals, keys = Totals(), _Keys(queue)
    found = survey(queue, keys.add, totals)
    ghosts = found.ghosts
    known = known._replace(
        returned=totals.returned,
        held=len(found.held),
        orphaned=len(found.orphaned),
        unlisted=len(found.unlisted),
        duplicated=len(found.duplicated),
        ghosts=len(ghosts),
        stray_leases=keys.count_stray_leases(ghosts),
        wrong_types=keys.count_wrong_types(),
        returns=totals.returns,
        results=keys.count_results(),
    )
    return known, frozenset(found.duplicated)


class _Keys:
    """Collects stray leases, results and keys of the wrong type in a walk over all keys.

    Keys may belong to a queue whose name begins like this queue's lease or result keys.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._stray: set[bytes] = set()
        self._wrong: dict[bytes, str] = {}
        # None if this user may not read them.
        self._results: set[bytes] | None = set()

    def add(self, page: Sequence[bytes]) -> None:
        """Look at a page of keys."""
        queue, keys = self._queue, self._queue.keys
        self._wrong.update(
            wrong_types(queue, [key for key in page if key.startswith(keys.id_prefixes)])
        )
        leased = ids_of(page, keys.lease_prefix, keys.old_lease_prefix)
        self._stray.update(
            _stray_among(queue, [i for i in leased if not may_be_in_nested_queue(i)])
        )
        if self._results is not None:
            try:
                for batch in read_result_keys(queue, ids_of(page, keys.result_prefix)):
                    self._results.update(each.item_id for each in batch if each.result)
                    self._wrong.update(
                        (keys.result(each.item_id), each.kind)
                        for each in batch
                        if not each.result and each.kind != "none"
                    )
            except PermissionDenied:
                self._results = None

    def count_stray_leases(self, ghosts: set[bytes]) -> int:
        """How many IDs have a lease but no data, and are not among these ghosts."""
        return len(_stray_among(self._queue, list(self._stray - ghosts)))

    def count_wrong_types(self) -> int:
        """How many keys of items, leases and results have the wrong type."""
        nested = self._nested_names()
        return sum(not is_key_of(key, nested) for key in self._wrong)

    def count_results(self) -> int | None:
        """How many results there are; None if this user may not read them."""
        if self._results is None:
            return None
        nested, key_of = self._nested_names(), self._queue.keys.result
        return sum(not is_key_of(key_of(item_id), nested) for item_id in self._results)

    def _nested_names(self) -> tuple[bytes, ...]:
        owners = (owner_of_structure(*each) for each in self._wrong.items())
        return tuple({owner for owner in owners if owner})


def _stray_among(queue: Queue, ids: Sequence[bytes]) -> list[bytes]:
    found = zip(ids, states(queue, ids), strict=True)
    return [item_id for item_id, state in found if state is State.STRAY_LEASE]
