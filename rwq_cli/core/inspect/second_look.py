"""A second look at items that may be between two commands of a worker or producer."""

from collections.abc import Collection, Iterator

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import look_up
from rwq_cli.core.state.rules import Facts
from rwq_cli.core.state.seen import Seen


def look_twice(queue: Queue, ids: Collection[bytes], grace_s: float) -> Iterator[Facts]:
    """Look up IDs, wait for the grace period, and look them up again.

    Yields:
        The facts of the second look, for the IDs that still name the same item (see `Seen`), or
        that a lease or guard protects by now, or that have no data.
    """
    seen = Seen()
    for found in look_up(queue, ids, identities=True):
        seen.note(found.facts.item_id, found.facts.identity, *found.processing[:1])
    queue.clock.sleep(grace_s)
    for facts, _, processing in look_up(queue, ids, identities=True):
        if not facts.identity or seen.is_still(facts.item_id, facts.identity, processing):
            yield facts
