"""What each state means: for `show`, `doctor`, the help and the pages."""

from typing import NamedTuple

from rwq_cli.core.model import State


class StateMeaning(NamedTuple):
    """A state in words; the queue is named `jobs`. The best command to suggest comes first."""

    meaning: str
    holds: str
    next: str
    verbs: tuple[str, ...] = ()

    @property
    def next_sentence(self) -> str:
        return f"{self.next[0].upper()}{self.next[1:]}."


STATES = {
    State.WAITING: StateMeaning(
        "It waits to be leased.",
        "data; once in the main list",
        "it is leased when its turn comes",
        ("bury", "complete"),
    ),
    State.LEASED: StateMeaning(
        "A worker has leased it.",
        "data; in processing; a lease with a TTL",
        "it is completed, or abandoned when the lease expires",
        ("release --force", "touch", "complete"),
    ),
    State.HELD: StateMeaning(
        "Its lease has no expiry. No worker sets such a lease.",
        "data; a lease without expiry",
        "nothing, until somebody ends the lease",
        ("release --force", "touch"),
    ),
    State.ABANDONED: StateMeaning(
        "In processing without a lease: its worker died or gave up.",
        "data; in processing; no lease",
        "a light clean returns it",
        ("clean light", "release"),
    ),
    State.ORPHANED: StateMeaning(
        "In no list and without a lease: a process died between two commands.",
        "data; in no list or sorted set; no lease",
        "a deep clean returns it",
        ("clean deep", "release"),
    ),
    State.UNLISTED: StateMeaning(
        "Leased, but in no list: its processing entry was lost.",
        "data; in no list or sorted set; a lease with a TTL",
        "it is orphaned when the lease expires",
        ("release --force", "complete"),
    ),
    State.DELAYED: StateMeaning(
        "It is delayed.",
        "data; in `jobs:delayed` with a due time in the future; a guard as its lease",
        "it is promoted to `waiting` when it is due",
        ("release", "release --delay 5m", "complete"),
    ),
    State.DUE: StateMeaning(
        "It was delayed, and is due now.",
        "as for `delayed`, with a due time in the past",
        "the next `rwq lease`, `work`, `wait`, `result --wait` or clean promotes it; so does "
        "`doctor --fix` if it is over a minute late",
        ("release", "complete"),
    ),
    State.BURIED: StateMeaning(
        "It is buried.",
        "data; in `jobs:buried`; a guard without expiry, which holds the reason",
        "nothing, until somebody kicks it",
        ("kick", "complete"),
    ),
    State.DUPLICATED: StateMeaning(
        "Listed more than once: its ID existed when it was added with --unique, or another "
        "program pushed it again.",
        "data; more than once in main, or in main and processing",
        "it may run twice, until a deep clean removes the surplus entries",
        ("doctor --fix", "clean deep"),
    ),
    State.GHOST: StateMeaning(
        "Listed without data: the item was completed, or its data was deleted.",
        "no data; the ID in a list, or in `jobs:delayed` or `jobs:buried`",
        "a deep clean drops the entry; so does a light one if the entry is in processing or due, "
        "and `rwq lease` when it reaches it",
        ("clean deep",),
    ),
    State.STRAY_LEASE: StateMeaning(
        "A lease without an item: the item was deleted, but not its lease.",
        "a lease, no data",
        "the lease expires; one without expiry stays until `doctor --fix` deletes it",
    ),
    State.GONE: StateMeaning(
        "There is no such item: it was completed or removed, or never added.", "nothing", "nothing"
    ),
    State.WRONG_TYPE: StateMeaning(
        "A key has the wrong type: something else writes under this name.",
        "a key of the wrong type",
        "nothing, until the key is renamed or deleted",
    ),
}
