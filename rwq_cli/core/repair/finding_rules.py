"""The rules that turn the facts about an ID into findings, for the doctor and for `show`."""

from collections.abc import Callable

from rwq_cli.core.inspect.keyspace import may_be_in_nested_queue
from rwq_cli.core.keys import GUARD_MARGIN_MS
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code
from rwq_cli.core.state.rules import Facts, is_guard
from rwq_cli.core.state.transit import transit_of

# A due item is late if it was not promoted before its guard ended.
LATE_MS = GUARD_MARGIN_MS

# States that are findings themselves.
_STATES = {state: Code(state.value) for state in State if state.is_broken}


def findings_about(facts: Facts) -> tuple[Code, ...]:
    """The codes of the problems of one ID."""
    if facts.wrong_types:
        return (Code.WRONG_TYPE,)
    if not facts.item_id and (facts.has_data or facts.is_listed or facts.has_schedule_entry):
        return (Code.EMPTY_ID,)
    found = [code for code, holds in _RULES if holds(facts)]
    state = facts.state
    return (_STATES[state], *found) if state in _STATES else tuple(found)


def _has_two_holders(facts: Facts) -> bool:
    new, old = facts.new_lease, facts.old_lease
    if not facts.has_data or new is None or old is None:
        return False
    # A guard has no holder.
    return new.holder != old.holder and not (is_guard(new) or is_guard(old))


def _is_late(facts: Facts) -> bool:
    is_late = facts.due_ms is not None and facts.due_ms + LATE_MS < facts.now_ms
    return is_late and facts.state is State.DUE


def _is_stray(facts: Facts, *, ends: bool) -> bool:
    """Whether it has a lease, with or without an end, but no data."""
    lease = None if facts.has_data else facts.lease
    if lease is None or lease.ends is not ends or may_be_in_nested_queue(facts.item_id):
        return False
    # The guard of a delayed or buried ghost is removed with its entry.
    return not (facts.has_schedule_entry and is_guard(lease))


def _is_moving(facts: Facts) -> bool:
    return facts.state is State.BURIED and transit_of(facts.reason) is not None


_RULES: tuple[tuple[Code, Callable[[Facts], bool]], ...] = (
    (Code.TWO_HOLDERS, _has_two_holders),
    (Code.ENDLESS_LEASE, lambda facts: _is_stray(facts, ends=False)),
    (Code.STRAY_LEASE, lambda facts: _is_stray(facts, ends=True)),
    (Code.DUE, _is_late),
    (Code.MOVING, _is_moving),
    (Code.UNGUARDED, lambda facts: facts.is_unguarded),
    (Code.INVALID_SCORE, lambda facts: facts.has_invalid_score),
    (Code.STALE_SCHEDULE, lambda facts: facts.has_stale_schedule),
    (Code.STALE_CLEANING, lambda facts: facts.is_stale_in_cleaning),
    (Code.STALE_RETURNS, lambda facts: facts.has_stale_returns),
    (Code.INVALID_RETURNS, lambda facts: facts.has_data and facts.has_invalid_returns),
)
