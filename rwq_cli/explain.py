"""What a state means, what happens next if nobody does anything, and what would move it on."""

import shlex
from dataclasses import dataclass

from rwq_cli.core.looking import Sighting
from rwq_cli.core.model import State
from rwq_cli.core.states import state_of
from rwq_cli.render import human
from rwq_cli.render.escape import escaped


@dataclass(frozen=True)
class Explanation:
    """The answer to "why is it stuck?".

    Attributes:
        meaning: The state in words.
        next: What happens if nobody does anything.
        commands: Command lines that would move the item on.
    """

    meaning: str
    next: str
    commands: tuple[str, ...]


def explain(queue: bytes, sighting: Sighting) -> Explanation:
    """Explain what was seen of one ID.

    Args:
        queue: The queue's name.
        sighting: What is known of it.
    """
    facts = sighting.facts
    state = state_of(facts)
    lease = facts.lease
    left = human.duration(lease.ttl_ms / 1000) if lease and lease.ttl_ms is not None else ""
    place = _place(sighting.position)
    meaning, following, verbs = {
        State.WAITING: ("It waits to be leased.", place, _for_waiting(sighting)),
        State.LEASED: (
            "A worker has it under a lease.",
            f"Unless it is completed or renewed, the lease ends in {left}; then it is abandoned "
            "and the next light clean returns it.",
            ("release --force", "touch", "complete"),
        ),
        State.HELD: (
            "It has a lease without expiry, which no worker sets.",
            "Nothing: no cleaner will ever return it while that lease exists.",
            ("release --force", "touch"),
        ),
        State.ABANDONED: (
            "It is in processing without a lease: its worker died or gave up.",
            "The next light clean, by whatever cleaner, returns it to the queue.",
            ("clean light", "release"),
        ),
        State.ORPHANED: (
            "It is in no list and has no lease: a crash between two commands.",
            "Only a deep clean returns it.",
            ("clean deep", "release"),
        ),
        State.UNLISTED: (
            "It has a lease but is in no list: its processing entry was lost.",
            f"The lease ends in {left}; then it is orphaned, and a deep clean returns it.",
            ("release --force", "complete"),
        ),
        State.DELAYED: ("It is put off.", _due(sighting), ("release --force",)),
        State.DUE: ("It was put off, and its time has come.", _due(sighting), ("release --force",)),
        State.BURIED: (
            "It was buried: set aside until somebody brings it back.",
            "Nothing: no cleaner touches it.",
            ("release --force", "complete"),
        ),
        State.DUPLICATED: (
            "It is in the lists more than once.",
            "It can be leased twice at a time; after one complete the other entry is a ghost.",
            ("clean deep",),
        ),
        State.GHOST: (
            "The ID is in a list but has no data: it was completed while it was listed.",
            "Leasing or cleaning drops the entry.",
            ("clean deep",) if facts.in_main else ("clean light",),
        ),
        State.STRAY_LEASE: (
            "There is a lease but no item: it was completed while it was leased.",
            f"The lease ends by itself in {left}." if left else "Nothing: it has no expiry.",
            () if left else ("complete",),
        ),
        State.GONE: ("There is no such item: it was completed, or never was.", "Nothing.", ()),
        State.WRONG_TYPE: (
            "A key holds another type than the protocol says; nothing can be concluded.",
            "Nothing that can be foretold.",
            (),
        ),
    }[state]
    return Explanation(
        meaning, following, tuple(_command(queue, verb, facts.item_id) for verb in verbs)
    )


def _for_waiting(sighting: Sighting) -> tuple[str, ...]:
    return ("release --front", "complete") if sighting.position else ("complete",)


def _place(position: int | None) -> str:
    if not position:
        return "It is the next to be leased."
    ahead = human.count(position)
    return (
        f"It is leased once the {ahead} ahead of it are."
        if position > 1
        else ("It is leased once the one ahead of it is.")
    )


def _due(sighting: Sighting) -> str:
    facts = sighting.facts
    if facts.due_ms is None:
        return ""
    ahead_s = (facts.due_ms - facts.now_ms) / 1000
    if ahead_s > 0:
        return f"It is due in {human.duration(ahead_s)}."
    return f"It has been due for {human.duration(-ahead_s)}."


def _command(queue: bytes, verb: str, item_id: bytes) -> str:
    name = shell_word(queue)
    if verb.startswith("clean"):
        return f"rwq {verb} -q {name}"
    given = shell_word(item_id)
    return f"rwq {verb} -q {name} {'-- ' if item_id.startswith(b'-') else ''}{given}"


def shell_word(raw: bytes) -> str:
    """A word that bash, zsh and ksh read as exactly these bytes, safe to show."""
    shown = escaped(raw)
    if shown.encode() == raw:
        return shlex.quote(shown)
    quoted = []
    for byte in raw:
        character = chr(byte)
        if character in "\\'":
            quoted.append(f"\\{character}")
        elif 0x20 <= byte < 0x7F:
            quoted.append(character)
        else:
            quoted.append(f"\\x{byte:02x}")
    # A hexadecimal digit that follows is not part of \xHH: two digits at most are read.
    return f"$'{''.join(quoted)}'"
