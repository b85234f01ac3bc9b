"""One pure function from the facts about an ID to its state.

Everything that shows, counts, explains or repairs asks this function, so two commands can never
call the same facts by two names.
"""

from rwq_cli.core.keys import BURIED_GUARD, DELAYED_GUARD
from rwq_cli.core.model import Facts, Lease, State

# In these an entry in processing is an old one that means nothing.
SCHEDULED = frozenset({State.DELAYED, State.DUE, State.BURIED})


def is_guard(lease: Lease | None) -> bool:
    """Whether a lease is ours, only to keep cleaners away from a delayed or buried item."""
    return lease is not None and lease.holder.startswith((DELAYED_GUARD, BURIED_GUARD))


def state_of(facts: Facts) -> State:
    """The state that the facts say.

    The lists decide before the zsets: an item that a worker can lease, or has leased, is that,
    whatever entry of ours was left behind (our cleans prune it).

    Args:
        facts: What one atomic look saw.

    Returns:
        The state, by the table of the protocol.
    """
    if facts.wrong_types:
        return State.WRONG_TYPE
    listed = facts.in_main + facts.in_processing
    scheduled = facts.due_ms is not None or facts.buried_ms is not None
    if not facts.has_data:
        if listed or scheduled:
            return State.GHOST
        return State.STRAY_LEASE if facts.lease is not None else State.GONE
    if facts.in_main > 1 or (facts.in_main and facts.in_processing):
        return State.DUPLICATED
    if facts.in_main:
        return State.WAITING
    guarded = is_guard(facts.lease) and scheduled
    if facts.in_processing and not guarded:
        return _state_in_processing(facts.lease)
    if facts.buried_ms is not None:
        return State.BURIED
    if facts.due_ms is not None:
        return State.DUE if facts.due_ms <= facts.now_ms else State.DELAYED
    if facts.lease is None:
        return State.ORPHANED
    return State.UNLISTED if facts.lease.ends else State.HELD


def _state_in_processing(lease: Lease | None) -> State:
    if lease is None:
        return State.ABANDONED
    return State.LEASED if lease.ends else State.HELD
