"""The doctor's findings: their codes and severities."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How severe a finding is. A healthy queue has only notes."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Code(StrEnum):
    """The codes of findings. Most have the name of a state.

    `DUE` is only for items that are over a minute late, and `STRAY_LEASE` only for leases that
    expire; those that do not are `ENDLESS_LEASE`.
    """

    WRONG_TYPE = "wrong-type"
    HELD = "held"
    DUPLICATED = "duplicated"
    TWO_HOLDERS = "two-holders"
    EVICTING_SERVER = "evicting-server"
    ABANDONED = "abandoned"
    ORPHANED = "orphaned"
    UNLISTED = "unlisted"
    DUE = "due"
    MOVING = "moving"
    UNGUARDED = "unguarded"
    GHOST = "ghost"
    INVALID_SCORE = "invalid-score"
    ENDLESS_LEASE = "endless-lease"
    STALE_SCHEDULE = "stale-schedule"
    STALE_CLEANING = "stale-cleaning"
    EMPTY_ID = "empty-id"
    SHADOWED_NAME = "shadowed-name"
    STRAY_LEASE = "stray-lease"
    STALE_RETURNS = "stale-returns"
    INVALID_RETURNS = "invalid-returns"
    FOREIGN_KEY = "foreign-key"
    NO_PERSISTENCE = "no-persistence"
    NO_HASH_TAG = "no-hash-tag"

    @property
    def severity(self) -> Severity:
        """The severity of findings with this code."""
        if self in _ERRORS:
            return Severity.ERROR
        return Severity.NOTE if self in _NOTES else Severity.WARNING


_ERRORS = frozenset(
    {Code.WRONG_TYPE, Code.HELD, Code.DUPLICATED, Code.TWO_HOLDERS, Code.EVICTING_SERVER}
)
_NOTES = frozenset(
    {
        Code.STRAY_LEASE,
        Code.STALE_RETURNS,
        Code.INVALID_RETURNS,
        Code.FOREIGN_KEY,
        Code.NO_PERSISTENCE,
        Code.NO_HASH_TAG,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and the IDs or keys that have it.

    Attributes:
        code: The code.
        count: The number of IDs or keys; 1 for findings about the server or the queue's name.
        examples: A few of them; the ones that are left come first.
        of_keys: Whether the examples are not IDs: key names, the queue's name, or the eviction
            policy.
        fixed: How many were fixed, or in a dry run would be.
        left: How many are left.
        reason: Why the first example is buried, if that tells what to do; else None.
    """

    code: Code
    count: int
    examples: tuple[bytes, ...]
    of_keys: bool
    fixed: int
    left: int
    reason: bytes | None = None
