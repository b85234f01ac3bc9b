"""What each of the doctor's findings means: its cause, its cure, and the command for it."""

import sys
from dataclasses import dataclass
from pathlib import Path

from rwq_cli.core.repair.findings import Code, Finding
from rwq_cli.views.command_lines import command_line, shell_word


@dataclass(frozen=True)
class Remedy:
    """What is told of a finding.

    Attributes:
        cause: What it is, and how it comes to be.
        cure: What puts it right.
        command: The command for that. After a command of rwq's, ` ID` stands for an ID; elsewhere
            `KEY` for a key; without either it is about the queue.
        kept: Why `--fix` leaves it, or some of it, as it is; None where it never does on purpose.
    """

    cause: str
    cure: str
    command: str
    kept: str | None = None


_FIX = "rwq doctor --fix"

REMEDIES = {
    Code.WRONG_TYPE: Remedy(
        "A key holds another type than the protocol says: something else writes under this name.",
        "Find out whose it is, and rename or delete it by hand.",
        "redis-cli TYPE KEY",
        "nothing can be concluded from it, and deleting it could lose somebody's data",
    ),
    Code.HELD: Remedy(
        "A lease has no expiry, which no worker sets: somebody took the expiry away by hand.",
        "Put the item back, or give the lease an end.",
        "rwq release --force ID",
        "it may be on purpose: somebody can be keeping the item from the workers",
    ),
    Code.DUPLICATED: Remedy(
        "An item is listed more than once: add --unique of an ID that existed, or a copy by hand. "
        "It may run twice.",
        "Take the surplus entries out.",
        _FIX,
    ),
    Code.TWO_HOLDERS: Remedy(
        "Workers of two generations hold the same item, each by its own lease key: a cleaner of "
        "the one took it from a worker of the other.",
        "Let both leases end, or choose whose work counts and end the other by hand.",
        "rwq show ID",
        "either worker may be the one that completes it",
    ),
    Code.EVICTING_SERVER: Remedy(
        "The server is set to delete keys once its memory reaches maxmemory, also if that is set "
        "only later: items and leases can vanish.",
        "Set its maxmemory-policy to noeviction.",
        "redis-cli CONFIG SET maxmemory-policy noeviction",
        "the server's settings are not the queue's",
    ),
    Code.ABANDONED: Remedy(
        "Items are in processing without a lease: their workers died or gave up.",
        "A light clean returns them.",
        "rwq clean light",
    ),
    Code.ORPHANED: Remedy(
        "Items are in no list and have no lease: something died between two commands.",
        "A deep clean returns them.",
        "rwq clean deep",
    ),
    Code.UNLISTED: Remedy(
        "Items have a lease but are in no list: their processing entries were lost.",
        "When the lease ends a deep clean returns them.",
        "rwq release --force ID",
        "a worker may still have it in hand; its lease ends by itself",
    ),
    Code.DUE: Remedy(
        "Delayed items have been due for over a minute, and nobody has brought them back.",
        "Any clean puts them into the queue.",
        "rwq clean light",
    ),
    Code.UNGUARDED: Remedy(
        "Delayed or buried items have lost the lease that guards them, or it ends too early: a "
        "cleaner of upstream's brings them back before their time.",
        "Guard them anew.",
        _FIX,
    ),
    Code.GHOST: Remedy(
        "IDs without data are listed: they were completed, or their data was deleted, meanwhile.",
        "Leasing or cleaning drops them.",
        "rwq clean deep",
    ),
    Code.INVALID_SCORE: Remedy(
        "Delayed or buried items have a time that is none: it is infinite, or far too large. "
        "Somebody wrote it by hand.",
        "Release them, or delay or bury them anew.",
        "rwq release ID",
        "when they are due is not for rwq to say",
    ),
    Code.ENDLESS_LEASE: Remedy(
        "Leases without expiry belong to no item: nothing would ever end them.",
        "Delete them.",
        _FIX,
    ),
    Code.STALE_SCHEDULE: Remedy(
        "Items that wait or are leased are noted as delayed or buried as well.",
        "Take the note away.",
        _FIX,
    ),
    Code.STALE_CLEANING: Remedy(
        "A cleaner of redis-work-queue 0.1 died and left IDs in its list that are gone or listed "
        "elsewhere.",
        "Take them off that list.",
        _FIX,
    ),
    Code.EMPTY_ID: Remedy(
        "An item or an entry has the empty string for an ID, most likely from an unset variable.",
        "Let a worker lease and complete it: no command line can name it.",
        "rwq lease",
        "it has data, so it is an item like any other",
    ),
    Code.SHADOWED_NAME: Remedy(
        "The keys of another queue look like items or leases of this one, or this one's look like "
        "its: a cleaner of the one can take the other's apart.",
        "Move one of them to another name.",
        "rwq queues",
        "which of them should move is not for rwq to say",
    ),
    Code.STRAY_LEASE: Remedy(
        "Leases are left of items that were completed meanwhile.",
        "Nothing is to be done: they end by themselves.",
        "rwq show ID",
        "they end by themselves",
    ),
    Code.STALE_RETURNS: Remedy(
        "Returns were counted of items that are completed.", "Take the counts away.", _FIX
    ),
    Code.INVALID_RETURNS: Remedy(
        "The count of an item's returns is no number, and counts as none: somebody wrote it by "
        "hand.",
        "Nothing needs to be done: the next return writes a number.",
        "rwq show ID",
        "the next return writes a number",
    ),
    Code.FOREIGN_KEY: Remedy(
        "Keys begin with the queue's name but are no part of any queue.",
        "Nothing needs to be done; purge and a rename of the queue leave them behind.",
        "redis-cli TYPE KEY",
        "they may be somebody's",
    ),
    Code.NO_PERSISTENCE: Remedy(
        "The server writes nothing to disk: when it stops, the queue is gone.",
        "Switch on its append-only file.",
        "redis-cli CONFIG SET appendonly yes",
        "the server's settings are not the queue's",
    ),
    Code.NO_HASH_TAG: Remedy(
        "The name has no hash tag, so that on a cluster the queue's keys would not be together.",
        "Nothing on a single server; on a cluster, call it by a name in braces.",
        "rwq stats",
        "workers know it by this name",
    ),
}


def command_for(queue: bytes, finding: Finding) -> str:
    """The command for a finding, with its first example, safe to paste.

    Args:
        queue: The queue's name.
        finding: The finding.
    """
    example = finding.examples[0] if finding.examples else b""
    template = REMEDIES[finding.code].command
    if not template.startswith("rwq "):
        return template.replace("KEY", shell_word(example))
    verb, takes_id, _ = template.removeprefix("rwq ").partition(" ID")
    if finding.code is Code.NO_HASH_TAG:
        queue = b"{" + queue + b"}"
    return command_line(verb, queue, example) if takes_id else f"rwq {verb} -q {shell_word(queue)}"


def kept_because(finding: Finding) -> str | None:
    """Why some of a finding is left after a cure; None where nothing is."""
    if not finding.left:
        return None
    return REMEDIES[finding.code].kept or "something else was at work on it"


BEGIN = "<!-- findings: made by python -m rwq_cli.views.remedies README.md -->"
END = "<!-- end of the findings -->"


def with_findings(text: str) -> str:
    """A README with the table of findings between its marks as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_table()}\n\n{END}{after}"


def _table() -> str:
    rows = ["| code | severity | what it is | `--fix` |", "| --- | --- | --- | --- |"]
    for code in Code:
        remedy = REMEDIES[code]
        done = "cured" if code.auto_fixable else "left"
        if remedy.kept:
            done += f"{'; left where' if code.auto_fixable else ':'} {remedy.kept}"
        rows.append(f"| `{code.value}` | {code.severity.value} | {remedy.cause} | {done} |")
    return "\n".join(rows)


def main() -> None:
    """Write the table into the file named."""
    file = Path(sys.argv[1])
    file.write_text(with_findings(file.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
