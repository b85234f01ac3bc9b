"""What each state and each finding means, and what to do: for `show`, `doctor`, help and pages."""

from typing import NamedTuple

from rwq_cli.core.health import CURES, Refusal
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import LONG_LEASE_MS, Code
from rwq_cli.core.state.rules import OFTEN_RETURNS


class StateMeaning(NamedTuple):
    """A state in words; the queue is named `jobs`. The best command to suggest comes first."""

    meaning: str
    holds: str
    next: str
    verbs: tuple[str, ...] = ()
    # The remedy (see `Remedy`), where it differs from `next` or from the first command.
    cure: str = ""
    command: str = ""
    left_because: str | None = None

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
        ("release --force", "touch", "complete --force"),
    ),
    State.HELD: StateMeaning(
        "Its lease has no expiry. No worker sets such a lease.",
        "data; a lease without expiry",
        "nothing, until somebody ends the lease",
        ("release --force", "release --force --state held", "touch"),
        "Release the item, or give its lease an expiry.",
        "rwq release --force ID",
        "it may be intentional, to keep the item from workers",
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
        ("release --force", "complete --force"),
        "Release it, or let its lease expire; then a deep clean returns it.",
        "rwq release --force ID",
        "a worker may still be working on it; the lease expires",
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
        ("release", "clean light", "complete"),
    ),
    State.BURIED: StateMeaning(
        "It is buried.",
        "data; in `jobs:buried`; a guard without expiry, which holds the reason",
        "nothing, until somebody kicks it",
        ("kick", "complete"),
    ),
    State.DUPLICATED: StateMeaning(
        "Listed more than once: its ID existed when it was added with --unchecked, or another "
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
        cure="None needed: it expires.",
        command="rwq show ID",
        left_because="it expires",
    ),
    State.GONE: StateMeaning(
        "There is no such item: it was completed or removed, or never added.", "nothing", "nothing"
    ),
    State.WRONG_TYPE: StateMeaning(
        "A key has the wrong type: something else writes under this name.",
        "a key of the wrong type",
        "nothing, until the key is renamed or deleted",
        cure="Find out whose key it is, and rename or delete it.",
        command="redis-cli TYPE KEY",
        left_because="its owner is unknown, and deleting it could lose data",
    ),
}


class Remedy(NamedTuple):
    """What a finding means, in words for one item however many there are, and what to do."""

    # ` ID` at the end of a command stands for an ID, `KEY` for a key. `left_because` says why
    # `--fix` leaves some of them.
    cause: str
    cure: str
    command: str
    left_because: str | None = None


_FIX = "rwq doctor --fix"
_SETTING = "the setting is the server's, not the queue's"

REMEDIES = {
    **{
        Code(state.value): Remedy(
            meaning.meaning,
            meaning.cure or meaning.next_sentence,
            meaning.command or f"rwq {meaning.verbs[0]}",
            meaning.left_because,
        )
        for state, meaning in STATES.items()
        if state.value in tuple(Code)
    },
    Code.TWO_HOLDERS: Remedy(
        "Workers of two generations hold the same item, each with its own lease key: a cleaner "
        "of one generation returned it while a worker of the other held it.",
        "Let both leases expire, or release the item with --force, which ends both.",
        "rwq show ID",
        "either worker may complete it",
    ),
    Code.OUT_OF_MEMORY: Remedy(
        "The server is at its memory limit and refuses what needs memory: nothing can be added, "
        "leased, returned or delayed. Completing and removing items still works.",
        f"{CURES[Refusal.OUT_OF_MEMORY].capitalize()}.",
        "redis-cli CONFIG SET maxmemory BYTES",
        _SETTING,
    ),
    Code.READONLY: Remedy(
        "The server is a replica and refuses all writes.",
        f"{CURES[Refusal.READONLY].capitalize()}.",
        "redis-cli INFO replication",
        _SETTING,
    ),
    Code.WRITE_ERRORS: Remedy(
        "The server could not save its data, and refuses all writes until it can.",
        f"{CURES[Refusal.WRITE_ERRORS].capitalize()}.",
        "redis-cli INFO persistence",
        _SETTING,
    ),
    Code.TOO_FEW_REPLICAS: Remedy(
        "Fewer replicas are connected than its min-replicas-to-write: it refuses all writes.",
        f"{CURES[Refusal.TOO_FEW_REPLICAS].capitalize()}.",
        "redis-cli INFO replication",
        _SETTING,
    ),
    Code.NEAR_MAXMEMORY: Remedy(
        "The server uses 90 % of its memory limit or more. At the limit it refuses writes, or "
        "evicts keys.",
        "Raise its maxmemory, or remove what can be spared.",
        "redis-cli INFO memory",
        _SETTING,
    ),
    Code.EVICTED: Remedy(
        "The server has evicted keys since it started: if they were items, their data is lost, "
        "and only ghosts are left of them.",
        "Save the IDs of the ghosts before a clean drops them.",
        "rwq doctor -o ids --only ghost",
        "what was evicted is gone",
    ),
    Code.RESTARTED: Remedy(
        "The server started less than an hour ago.",
        "Check that it has loaded the data that you expect; ages count from zero again.",
        "redis-cli INFO persistence",
        "it is for information only",
    ),
    Code.FLUSHED: Remedy(
        "FLUSHDB or FLUSHALL was called after the server started: what it had until then is gone.",
        "If that was a mistake, restore an export or a backup.",
        "redis-cli INFO commandstats",
        "what was flushed is gone",
    ),
    Code.EVICTING_SERVER: Remedy(
        "The server's maxmemory-policy evicts keys once maxmemory is reached, even if that is "
        "set later: items and leases can vanish.",
        "Set its maxmemory-policy to noeviction.",
        "redis-cli CONFIG SET maxmemory-policy noeviction",
        _SETTING,
    ),
    Code.DUE: Remedy(
        "Due for over a minute, and nothing has promoted it.",
        "Any clean promotes it.",
        "rwq clean light",
    ),
    Code.MOVING: Remedy(
        "A move to or from another server has buried it, and has not finished: it was "
        "interrupted, or is still running.",
        "Run the same mv again, which finishes what was interrupted; rwq ls buried --by reason "
        "lists these moves.",
        "rwq mv ID",
        "a move finishes it, on both servers",
    ),
    Code.UNGUARDED: Remedy(
        "The guard lease of a delayed or buried item is missing or expires too early, so workers' "
        "cleaners will return it before it is due or kicked.",
        "Restore the guard.",
        _FIX,
    ),
    Code.INVALID_SCORE: Remedy(
        "Its score as a delayed or buried item is not a time: infinite, or far too large. rwq "
        "never writes one.",
        "Release it, or delay or bury it again.",
        "rwq release ID",
        "rwq cannot know when it is due",
    ),
    Code.ENDLESS_LEASE: Remedy(
        "A lease without expiry belongs to no item and would stay forever.", "Delete it.", _FIX
    ),
    Code.STALE_SCHEDULE: Remedy(
        "Waiting or leased, and also listed as delayed or buried.", "Remove that entry.", _FIX
    ),
    Code.STALE_CLEANING: Remedy(
        "A cleaner of redis-work-queue 0.1 died and left the ID in its list, although the item is "
        "gone or listed elsewhere.",
        "Remove it from that list.",
        _FIX,
    ),
    Code.EMPTY_ID: Remedy(
        "The item or entry has an empty ID, most likely from an unset variable.",
        "Let a worker lease and complete it: no command line can name it.",
        "rwq lease",
        "it has data, so it is an ordinary item",
    ),
    Code.BINARY_ID: Remedy(
        "Its ID is not UTF-8: workers and cleaners of other languages fail on it, and do "
        "not clean the items behind it.",
        "Let a worker of rwq or Go complete it, or add its data under another ID and remove it.",
        "rwq show ID -o data",
        "nothing can rename an item",
    ),
    Code.SHADOWED_NAME: Remedy(
        "Keys of another queue look like items or leases of this one, or vice versa: a cleaner of "
        "one queue can damage the other.",
        "Move one of them to another name.",
        "rwq queues",
        "rwq cannot know which of them should move",
    ),
    Code.OFTEN_RETURNED: Remedy(
        f"Returned {OFTEN_RETURNS} times or more: it may fail each time, or stop its worker.",
        "Correct its data, or bury it, as clean --bury-after and work --retries do.",
        "rwq show ID",
        "whether it can succeed is not known",
    ),
    Code.LONG_LEASE: Remedy(
        f"Its lease lasts for over {LONG_LEASE_MS // 3_600_000} hours more: if its holder died, "
        "no clean returns it before then.",
        "If its holder is gone, release it.",
        "rwq release --force ID",
        "its holder may still be working on it",
    ),
    Code.STALE_RETURNS: Remedy(
        "The item is gone, but its returns are still counted.", "Remove the count.", _FIX
    ),
    Code.INVALID_RETURNS: Remedy(
        "The count of its returns is not a number, and counts as zero: something else wrote it.",
        "None needed: the next return writes a number.",
        "rwq show ID",
        "the next return writes a number",
    ),
    Code.FOREIGN_KEY: Remedy(
        "A key begins with the queue's name but is not part of any queue.",
        "None needed: purge leaves it alone.",
        "redis-cli TYPE KEY",
        "something else may use it",
    ),
    Code.STALLED: Remedy(
        "By the history, it has been next for at least ten minutes, and no item was done.",
        "See whether workers run, and whether this item stops them.",
        "rwq show ID",
        "only a worker can take it",
    ),
    Code.NO_PERSISTENCE: Remedy(
        "The server writes nothing to disk: when it stops, the queue is lost.",
        "Enable its append-only file.",
        "redis-cli CONFIG SET appendonly yes",
        _SETTING,
    ),
    Code.NO_HASH_TAG: Remedy(
        "The name has no hash tag: the queue's keys are on different nodes of the cluster.",
        "Move the queue to a name in braces.",
        "rwq stats",
        "workers know it by this name",
    ),
}

# Of ghosts on a server that has evicted keys.
EVICTED_GHOSTS = Remedy(
    "Listed without data. The server has evicted keys since it started, so these may be items that "
    "were lost: their entries are the only list of them.",
    "Save their IDs. Then a deep clean drops the entries.",
    "rwq doctor -o ids --only ghost",
)
