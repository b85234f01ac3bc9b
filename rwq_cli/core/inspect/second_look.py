"""A second look at items that may be between two commands of a worker or producer."""

from collections.abc import Collection, Iterator

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.state.first_look import FirstLook
from rwq_cli.core.state.rules import Facts


def look_twice(queue: Queue, ids: Collection[bytes], grace_s: float) -> Iterator[Facts]:
    """Look up IDs, wait for the grace period, and look them up again.

    Yields:
        The facts of the second look, for the IDs that still name the same item (see `FirstLook`),
        or that a lease or guard protects by now, or that have no data.
    """
    look = FirstLook(queue.now_ms())
    for facts in facts_of(queue, ids, digests=True):
        look.note(facts)
    queue.clock.sleep(grace_s)
    for facts in facts_of(queue, ids, digests=True):
        if not facts.digest or look.is_same(facts):
            yield facts
