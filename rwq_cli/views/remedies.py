"""The cause, cure and command of each finding of the doctor."""

from typing import NamedTuple

from rwq_cli.core.repair.findings import Code, Finding
from rwq_cli.views.command_lines import CommandLines, shell_word


class Remedy(NamedTuple):
    """The explanation of a finding.

    Attributes:
        cause: What it is, and what causes it.
        cure: How to fix it.
        command: The command that fixes it or shows more. ` ID` at the end of an rwq command stands
            for an ID, `KEY` in other commands for a key; otherwise it is for the whole queue.
        left_because: Why `--fix` leaves some of them; None if it fixes all.
    """

    cause: str
    cure: str
    command: str
    left_because: str | None = None


_FIX = "rwq doctor --fix"

REMEDIES = {
    Code.WRONG_TYPE: Remedy(
        "A key has the wrong type: something else writes under this name.",
        "Find out whose key it is, and rename or delete it.",
        "redis-cli TYPE KEY",
        "its owner is unknown, and deleting it could lose data",
    ),
    Code.HELD: Remedy(
        "A lease has no expiry. No worker sets such a lease.",
        "Release the item, or give the lease an expiry.",
        "rwq release --force ID",
        "it may be intentional, to keep the item from workers",
    ),
    Code.DUPLICATED: Remedy(
        "An item is listed more than once: its ID existed when it was added with --unique, or "
        "another program pushed it again. It may run twice.",
        "Remove the surplus entries.",
        _FIX,
    ),
    Code.TWO_HOLDERS: Remedy(
        "Workers of two generations hold the same item, each with its own lease key: a cleaner "
        "of one generation returned it while a worker of the other held it.",
        "Let both leases expire, or release the item with --force, which ends both.",
        "rwq show ID",
        "either worker may complete it",
    ),
    Code.EVICTING_SERVER: Remedy(
        "The server's maxmemory-policy evicts keys once maxmemory is reached, even if that is "
        "set later: items and leases can vanish.",
        "Set its maxmemory-policy to noeviction.",
        "redis-cli CONFIG SET maxmemory-policy noeviction",
        "the setting is the server's, not the queue's",
    ),
    Code.ABANDONED: Remedy(
        "Items are in processing without a lease: their workers died or gave up.",
        "A light clean returns them.",
        "rwq clean light",
    ),
    Code.ORPHANED: Remedy(
        "Items are in no list and have no lease: a process died between two commands.",
        "A deep clean returns them.",
        "rwq clean deep",
    ),
    Code.UNLISTED: Remedy(
        "Items have a lease but are in no list: their processing entries were lost.",
        "Release them, or let their leases expire; then a deep clean returns them.",
        "rwq release --force ID",
        "a worker may still be working on them; the leases expire",
    ),
    Code.DUE: Remedy(
        "Delayed items have been due for over a minute, and nothing has promoted them.",
        "Any clean promotes them.",
        "rwq clean light",
    ),
    Code.UNGUARDED: Remedy(
        "The guard leases of delayed or buried items are missing or expire too early, so workers' "
        "cleaners will return the items before they are due or kicked.",
        "Restore the guards.",
        _FIX,
    ),
    Code.GHOST: Remedy(
        "IDs without data are listed: the items were completed, or their data was deleted.",
        "A deep clean drops them.",
        "rwq clean deep",
    ),
    Code.INVALID_SCORE: Remedy(
        "Delayed or buried items have a score that is not a time: infinite, or far too large. "
        "rwq never writes one.",
        "Release them, or delay or bury them again.",
        "rwq release ID",
        "rwq cannot know when they are due",
    ),
    Code.ENDLESS_LEASE: Remedy(
        "Leases without expiry belong to no item and would stay forever.", "Delete them.", _FIX
    ),
    Code.STALE_SCHEDULE: Remedy(
        "Items that are waiting or leased also have an entry as delayed or buried.",
        "Remove those entries.",
        _FIX,
    ),
    Code.STALE_CLEANING: Remedy(
        "A cleaner of redis-work-queue 0.1 died and left IDs in its list that are gone or listed "
        "elsewhere.",
        "Remove them from that list.",
        _FIX,
    ),
    Code.EMPTY_ID: Remedy(
        "An item or an entry has an empty ID, most likely from an unset variable.",
        "Let a worker lease and complete it: no command line can name it.",
        "rwq lease",
        "it has data, so it is an ordinary item",
    ),
    Code.SHADOWED_NAME: Remedy(
        "Keys of another queue look like items or leases of this one, or vice versa: a cleaner of "
        "one queue can damage the other.",
        "Move one of them to another name.",
        "rwq queues",
        "rwq cannot know which of them should move",
    ),
    Code.STRAY_LEASE: Remedy(
        "Completed items have left leases behind.",
        "None needed: they expire.",
        "rwq show ID",
        "they expire",
    ),
    Code.STALE_RETURNS: Remedy(
        "Returns of completed items are still counted.", "Remove the counts.", _FIX
    ),
    Code.INVALID_RETURNS: Remedy(
        "The count of an item's returns is not a number, and counts as zero: something else wrote "
        "it.",
        "None needed: the next return writes a number.",
        "rwq show ID",
        "the next return writes a number",
    ),
    Code.FOREIGN_KEY: Remedy(
        "Keys begin with the queue's name but are not part of any queue.",
        "None needed: purge leaves them alone.",
        "redis-cli TYPE KEY",
        "something else may use them",
    ),
    Code.NO_PERSISTENCE: Remedy(
        "The server writes nothing to disk: when it stops, the queue is lost.",
        "Enable its append-only file.",
        "redis-cli CONFIG SET appendonly yes",
        "the setting is the server's, not the queue's",
    ),
    Code.NO_HASH_TAG: Remedy(
        "The name has no hash tag: on a cluster the queue's keys would be on different nodes.",
        "None needed on a single server; on a cluster, use a name in braces.",
        "rwq stats",
        "workers know it by this name",
    ),
}


def command_for(lines: CommandLines, queue: bytes, finding: Finding) -> str:
    """The command for a finding of a queue, with its first example, safe to paste."""
    example = finding.examples[0] if finding.examples else b""
    template = REMEDIES[finding.code].command
    if not template.startswith("rwq "):
        words = template.removeprefix("redis-cli ").replace("KEY", shell_word(example))
        return lines.of_redis_cli(words)
    verb, takes_id, _ = template.removeprefix("rwq ").partition(" ID")
    return lines.of_item(verb, queue, example) if takes_id else lines.of_queue(verb, queue)


def left_because(finding: Finding) -> str | None:
    """Why `--fix` left some of them; None if none are left."""
    if not finding.left:
        return None
    return REMEDIES[finding.code].left_because or "it changed meanwhile"
