"""The doctor's findings about one item, as `rwq show` explains them."""

from typing import NamedTuple

from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code
from rwq_cli.views.states import STATES


class ItemRemedy(NamedTuple):
    """The explanation of a finding about one item.

    Attributes:
        cause: What it is, and what causes it.
        cure: How to fix it.
    """

    cause: str
    cure: str


def _of(state: State, cure: str | None = None) -> ItemRemedy:
    """The remedy of a state: as the state itself is explained, unless something is to be done."""
    return ItemRemedy(STATES[state].meaning, cure or STATES[state].next_sentence)


ITEM_REMEDIES = {
    Code.WRONG_TYPE: ItemRemedy(
        "A key has the wrong type: something else writes under this name.",
        "Find out whose key it is, and rename or delete it.",
    ),
    Code.HELD: _of(State.HELD, "Release the item, or give its lease an expiry."),
    Code.DUPLICATED: _of(State.DUPLICATED),
    Code.TWO_HOLDERS: ItemRemedy(
        "Workers of two generations hold it, each with its own lease key: a cleaner of one "
        "generation returned it while a worker of the other held it.",
        "Let both leases expire, or release the item with --force, which ends both.",
    ),
    Code.ABANDONED: _of(State.ABANDONED),
    Code.ORPHANED: _of(State.ORPHANED),
    Code.UNLISTED: _of(
        State.UNLISTED, "Release it, or let its lease expire; then a deep clean returns it."
    ),
    Code.DUE: ItemRemedy(
        "It has been due for over a minute, and nothing has promoted it.",
        "Any clean promotes it.",
    ),
    Code.UNGUARDED: ItemRemedy(
        "Its guard lease is missing or expires too early, so workers' cleaners will return it "
        "before it is due or kicked.",
        "Restore the guard.",
    ),
    Code.GHOST: _of(State.GHOST),
    Code.INVALID_SCORE: ItemRemedy(
        "Its score as delayed or buried is not a time: infinite, or far too large. rwq never "
        "writes one.",
        "Release it, or delay or bury it again.",
    ),
    Code.ENDLESS_LEASE: ItemRemedy(
        "A lease without expiry belongs to no item and would stay forever.", "Delete it."
    ),
    Code.STALE_SCHEDULE: ItemRemedy(
        "It is waiting or leased, and also has an entry as delayed or buried.",
        "Remove that entry.",
    ),
    Code.STALE_CLEANING: ItemRemedy(
        "A cleaner of redis-work-queue 0.1 died and left the ID in its list, although the item is "
        "gone or listed elsewhere.",
        "Remove it from that list.",
    ),
    Code.EMPTY_ID: ItemRemedy(
        "The item or entry has an empty ID, most likely from an unset variable.",
        "Let a worker lease and complete it: no command line can name it.",
    ),
    Code.STRAY_LEASE: _of(State.STRAY_LEASE, "None needed: it expires."),
    Code.STALE_RETURNS: ItemRemedy(
        "The item is gone, but its returns are still counted.", "Remove the count."
    ),
    Code.INVALID_RETURNS: ItemRemedy(
        "The count of its returns is not a number, and counts as zero: something else wrote it.",
        "None needed: the next return writes a number.",
    ),
}
