"""Which findings the facts about an ID come to: the same for the doctor and for `show`."""

from collections.abc import Callable, Mapping

from rwq_cli.core.inspect.foreign_keys import may_be_nested
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code
from rwq_cli.core.state.rules import Facts, is_guard

# A due item is late if nobody promoted it while its guard outlived its due time.
LATE_MS = 60_000

_Rule = Callable[[Facts], bool]


def findings_about(facts: Facts) -> tuple[Code, ...]:
    """What is wrong with one ID, in the order of the codes."""
    if facts.wrong_types:
        return (Code.WRONG_TYPE,)
    if not facts.item_id and (facts.has_data or facts.is_listed or facts.is_scheduled):
        return (Code.EMPTY_ID,)
    return tuple(code for code, holds in _RULES.items() if holds(facts))


def _is(state: State) -> _Rule:
    return lambda facts: facts.state is state


def _has_two_holders(facts: Facts) -> bool:
    # A guard beside a session's lease is nobody's.
    leases = (facts.new_lease, facts.old_lease)
    holders = {lease.holder for lease in leases if lease is not None and not is_guard(lease)}
    return facts.has_data and len(holders) > 1


def _is_late(facts: Facts) -> bool:
    if facts.state is not State.DUE or facts.due_ms is None:
        return False
    return facts.due_ms + LATE_MS < facts.now_ms


def _is_stray(facts: Facts, *, ends: bool) -> bool:
    """Whether there is a lease that ends, or that does not, but no data."""
    lease = facts.lease
    if facts.has_data or lease is None or lease.ends is not ends or may_be_nested(facts.item_id):
        return False
    # The guard of a delayed or buried ghost goes with its entry.
    return not (facts.is_scheduled and is_guard(lease))


_RULES: Mapping[Code, _Rule] = {
    Code.HELD: _is(State.HELD),
    Code.DUPLICATED: _is(State.DUPLICATED),
    Code.TWO_HOLDERS: _has_two_holders,
    Code.ABANDONED: _is(State.ABANDONED),
    Code.ORPHANED: _is(State.ORPHANED),
    Code.UNLISTED: _is(State.UNLISTED),
    Code.DUE: _is_late,
    Code.UNGUARDED: lambda facts: facts.is_unguarded and not facts.has_invalid_score,
    Code.GHOST: _is(State.GHOST),
    Code.INVALID_SCORE: lambda facts: facts.has_invalid_score,
    Code.ENDLESS_LEASE: lambda facts: _is_stray(facts, ends=False),
    Code.STALE_SCHEDULE: lambda facts: facts.has_stale_schedule,
    Code.STALE_CLEANING: lambda facts: facts.is_stale_in_cleaning,
    Code.STRAY_LEASE: lambda facts: _is_stray(facts, ends=True),
    Code.STALE_RETURNS: lambda facts: facts.has_stale_returns,
    Code.INVALID_RETURNS: lambda facts: facts.has_data and facts.has_invalid_returns,
}
