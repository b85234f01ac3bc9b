"""What each state means: for `show`, the help and the README."""

from typing import NamedTuple

from rwq_cli.core.model import State


class StateMeaning(NamedTuple):
    """A state in words; the queue is named `jobs`.

    Attributes:
        meaning: What it means, a sentence.
        holds: What the server holds.
        next: What happens next.
    """

    meaning: str
    holds: str
    next: str


STATES = {
    State.WAITING: StateMeaning(
        "It waits to be leased.",
        "data; once in the main list",
        "it is leased when its turn comes",
    ),
    State.LEASED: StateMeaning(
        "A worker has leased it.",
        "data; in processing; a lease with a TTL",
        "it is completed, or abandoned when the lease expires",
    ),
    State.HELD: StateMeaning(
        "It has a lease without expiry, which no worker sets.",
        "data; a lease without expiry",
        "nothing, until somebody ends the lease",
    ),
    State.ABANDONED: StateMeaning(
        "It is in processing without a lease: its worker died or gave up.",
        "data; in processing; no lease",
        "a light clean returns it",
    ),
    State.ORPHANED: StateMeaning(
        "It is in no list and has no lease: a process died between two commands.",
        "data; in no list; no lease",
        "a deep clean returns it",
    ),
    State.UNLISTED: StateMeaning(
        "It has a lease but is in no list: its processing entry was lost.",
        "data; in no list; a lease with a TTL",
        "it is orphaned when the lease expires",
    ),
    State.DELAYED: StateMeaning(
        "It is delayed.",
        "data; in `jobs:delayed` with a due time in the future; a guard as its lease",
        "it is promoted to `waiting` when it is due",
    ),
    State.DUE: StateMeaning(
        "It was delayed, and is due now.",
        "as for `delayed`, with a due time in the past",
        "the next `rwq lease`, clean or wait promotes it",
    ),
    State.BURIED: StateMeaning(
        "It is buried until somebody kicks it.",
        "data; in `jobs:buried`; a guard without expiry, which holds the reason",
        "nothing, until somebody kicks it",
    ),
    State.DUPLICATED: StateMeaning(
        "It is in the lists more than once.",
        "data; more than once in main, or in main and processing",
        "it may run twice; a deep clean removes the surplus entries",
    ),
    State.GHOST: StateMeaning(
        "The ID has an entry but no data: the item was completed by another worker.",
        "no data; the ID in a list, or in `jobs:delayed` or `jobs:buried`",
        "a deep clean drops it, or a lease that reaches it",
    ),
    State.STRAY_LEASE: StateMeaning(
        "There is a lease but no item: the item was completed while it was leased.",
        "a lease, no data",
        "the lease expires",
    ),
    State.GONE: StateMeaning(
        "There is no such item: it was completed, or never added.",
        "nothing",
        "nothing",
    ),
    State.WRONG_TYPE: StateMeaning(
        "A key has the wrong type; its state is unknown.",
        "a key of the wrong type",
        "nothing, until somebody finds out whose key it is",
    ),
}
