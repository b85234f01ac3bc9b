"""The facts about an ID, its effective lease and its state.

All code that shows, counts, explains or repairs uses these functions. Scripts use the same ones in
`core/lua/lib/state.lua`; a test compares the two over every combination of facts.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rwq_cli.core.keys import (
    BURIED_GUARD,
    DELAYED_GUARD,
    GUARDS,
    MOVING,
    MOVING_HERE,
    OWN_LEASE,
    SETTLING_GUARD,
)
from rwq_cli.core.model import TIME_MS_MAX, Lease, State

# From this count on, something is probably wrong with an item.
OFTEN_RETURNS = 5
_LAST_NUMBER = re.compile(rb"[0-9]+$")


class Facts(NamedTuple):
    """Everything that the server stores about one ID at one instant. A tuple, because millions of
    them are made: a frozen dataclass takes six times as long."""

    item_id: bytes
    has_data: bool
    # How often it is in the lists; the last is that of 0.1 cleaners.
    in_main: int = 0
    in_processing: int = 0
    in_cleaning: int = 0
    # Under the new and the old name. A key of the wrong type has an empty holder.
    new_lease: Lease | None = None
    old_lease: Lease | None = None
    # Its scores in the sorted sets, and the server's clock at that instant, unix ms.
    due_ms: float | None = None
    buried_ms: float | None = None
    now_ms: int = 0
    # None for never, and for a count that is not a number.
    returns: int | None = None
    # Its keys of the wrong type, with their types.
    wrong_types: Mapping[bytes, str] = MappingProxyType({})
    has_invalid_returns: bool = False
    # Of the data, if it was asked for and neither a session nor a guard protects them; else b"".
    digest: bytes = b""

    @property
    def live_leases(self) -> tuple[Lease | None, Lease | None]:
        """The leases under the new and the old name, as far as they count.

        rwq sets a lease of its own under both: under one alone, or beside another value, a client
        that knows only the other name has ended it.
        """
        new, old = self.new_lease, self.old_lease
        if new is not None and old is not None and new.holder == old.holder:
            return new, old
        return _unless_own(new), _unless_own(old)

    @property
    def was_ended(self) -> bool:
        """Whether a lease of rwq is left that does not count any more."""
        return self.live_leases != (self.new_lease, self.old_lease)

    @property
    def lease(self) -> Lease | None:
        """The effective lease, which counts where the new and the old name disagree.

        A lease whose holder cannot be read takes precedence over a session's lease, and that over
        the guard of a delayed or buried item. Of two leases of one kind, the one that ends later
        counts. A settling lease never counts.
        """
        new, old = self.live_leases
        lease = old if new is None or (old is not None and _rank(old) > _rank(new)) else new
        return None if guard_kind(lease) == SETTLING_GUARD else lease

    @property
    def session(self) -> Lease | None:
        """The effective lease unless it is a guard: of a worker or a script."""
        if self.new_lease is None and self.old_lease is None:
            return None
        lease = self.lease
        return None if is_guard(lease) else lease

    @property
    def pushed_ms(self) -> int | None:
        """When rwq pushed it, unix ms, as its settling lease tells; None without one."""
        digits = _LAST_NUMBER.search(self._guard(SETTLING_GUARD) or b"")
        return int(digits[0]) if digits else None

    def _guard(self, kind: bytes) -> bytes | None:
        """The value of the guard of this kind, under the new name or else under the old."""
        both = (self.new_lease, self.old_lease)
        return next((lease.holder for lease in both if lease and guard_kind(lease) == kind), None)

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing but data and entries in main and processing, as most have."""
        return self[4:9] == _PLAIN[4:9] and self[10:13] == _PLAIN[10:13]

    @property
    def is_listed(self) -> bool:
        return self.in_main > 0 or self.in_processing > 0

    @property
    def has_schedule_entry(self) -> bool:
        return self.due_ms is not None or self.buried_ms is not None

    @property
    def has_invalid_score(self) -> bool:
        """Whether it is never due, or its time of burial is not a valid time."""
        is_never_due = self.due_ms is not None and self.due_ms > TIME_MS_MAX
        return is_never_due or (self.buried_ms is not None and whole_ms(self.buried_ms) is None)

    @property
    def is_guarded(self) -> bool:
        """Whether guards under both lease names prove that it is delayed or buried: unless it is in
        main, which the caller checks. rwq sets both only when it takes an item off both lists. So
        if it is in processing, another program has pushed it since, and a worker has popped it, but
        has not leased it yet."""
        if not self.has_schedule_entry or self.new_lease is None or self.old_lease is None:
            return False
        kind = guard_kind(self.new_lease)
        score = {BURIED_GUARD: self.buried_ms, DELAYED_GUARD: self.due_ms}.get(kind or b"")
        return score is not None and kind == guard_kind(self.old_lease)

    @property
    def has_unsure_schedule(self) -> bool:
        """Whether its entry in a sorted set does not tell its state: it is in both, or lacks a
        guard."""
        is_in_both = self.due_ms is not None and self.buried_ms is not None
        return is_in_both or (self.has_schedule_entry and not self.is_guarded)

    @property
    def is_unguarded(self) -> bool:
        """Whether it is delayed or buried without a guard under one name, so that a cleaner that
        knows only that name could return it."""
        if not self.has_schedule_entry or self.is_guarded or self.session is not None:
            return False
        # What is never due has no guard: none lasts so long.
        is_never_due = self.buried_ms is None and self.has_invalid_score
        return not is_never_due and self.state in (State.DELAYED, State.BURIED)

    @property
    def reason(self) -> bytes | None:
        """Why it is buried, as the guard under the new name says, or else the one under the old."""
        value = None if self.buried_ms is None else self._guard(BURIED_GUARD)
        return value and value.removeprefix(BURIED_GUARD)

    @property
    def has_stale_schedule(self) -> bool:
        """Whether it is an item in a list that also has an entry in a sorted set."""
        is_in_both = self.has_schedule_entry and self.is_listed and self.has_data
        return is_in_both and not self.wrong_types and not self.state.is_scheduled

    @property
    def is_stale_in_cleaning(self) -> bool:
        """Whether it has a meaningless entry in the list of a 0.1 cleaner."""
        is_elsewhere = self.is_listed or self.has_schedule_entry
        return self.in_cleaning > 0 and (is_elsewhere or not self.has_data)

    @property
    def is_often_returned(self) -> bool:
        return self.has_data and self.returns is not None and self.returns >= OFTEN_RETURNS

    @property
    def has_stale_returns(self) -> bool:
        return not self.has_data and (self.returns is not None or self.has_invalid_returns)

    @property
    def state(self) -> State:
        """The state, by the table of the protocol.

        The lists take precedence over the sorted sets: an item that a worker can lease, or has
        leased, is waiting or leased, even if an old entry was left in a sorted set; cleans prune
        it. Only an item that `is_guarded` stays delayed or buried if it is in processing.
        """
        if self.wrong_types:
            return State.WRONG_TYPE
        if not self.has_data:
            if self.is_listed or self.has_schedule_entry:
                return State.GHOST
            return State.STRAY_LEASE if self.lease is not None else State.GONE
        if self.in_main > 1 or (self.in_main and self.in_processing):
            return State.DUPLICATED
        if self.in_main:
            return State.WAITING
        if self.in_processing and not self.is_guarded:
            return self._state_unless_held(State.LEASED, State.ABANDONED)
        if self.buried_ms is not None:
            return State.BURIED
        if self.due_ms is not None:
            return State.DUE if self.due_ms <= self.now_ms else State.DELAYED
        return self._state_unless_held(State.UNLISTED, State.ORPHANED)

    def _state_unless_held(self, leased: State, otherwise: State) -> State:
        session = self.session
        if session is None:
            return otherwise
        return leased if session.ends else State.HELD


_PLAIN = Facts(b"", False)


def whole_ms(score: float | None) -> int | None:
    """A score as a time in whole unix ms; None for None, and for a score that is not a time."""
    return int(score) if score is not None and abs(score) <= TIME_MS_MAX else None


def guard_kind(lease: Lease | None) -> bytes | None:
    """The prefix of a guard's value; None for any other lease."""
    return lease.holder[: lease.holder.index(b":") + 1] if lease and is_guard(lease) else None


def is_guard(lease: Lease | None) -> bool:
    """Whether a lease is the guard of a delayed or buried item, or a settling lease."""
    return lease is not None and lease.holder.startswith(GUARDS)


def _unless_own(lease: Lease | None) -> Lease | None:
    return None if lease is not None and lease.holder.startswith(OWN_LEASE) else lease


def _rank(lease: Lease) -> tuple[int, float]:
    kind = guard_kind(lease)
    rank = 3 if not lease.holder else 2 if kind is None else 0 if kind == SETTLING_GUARD else 1
    return rank, float("inf") if lease.ttl_ms is None else lease.ttl_ms


_END = b"; the same rwq mv finishes it"
_REASON = re.compile(
    rb"(%b to|%b from) (.+?)(?: \(move ([0-9a-f]+):([0-9a-f]+)\))?%b" % (MOVING, MOVING_HERE, _END),
    re.DOTALL,
)


class Transit(NamedTuple):
    """The queue at the other end of a move, and its server; None if it is that of this queue."""

    # At the destination, where the item is a copy until it has left the other end.
    is_copy: bool
    queue: bytes
    server: bytes | None = None
    # Of a copy: the end of the name of `Q:moved:…` at the other end, and who moves.
    place: bytes | None = None
    mover: bytes | None = None

    @property
    def reason(self) -> bytes:
        """Why the item is buried."""
        end = self.queue if self.server is None else b"%b on %b" % (self.queue, self.server)
        move = b" (move %b:%b)" % (self.place, self.mover) if self.place and self.mover else b""
        return (MOVING_HERE + b" from " if self.is_copy else MOVING + b" to ") + end + move + _END


def transit_of(reason: bytes | None) -> Transit | None:
    """What the reason of a buried item says of a move; None if it is another reason."""
    match = _REASON.fullmatch(reason or b"")
    if match is None:
        return None
    is_copy, end, *move = match[1].startswith(MOVING_HERE), *match.groups()[1:]
    queue, on, server = end.rpartition(b" on ")
    # The address of a server has no spaces.
    has_server = on and b"://" in server
    return Transit(is_copy, *((queue, server) if has_server else (end, None)), *move)
