"""The names of all keys of a queue; docs/how-it-works.md says what each holds.

The scores of `delayed` and `buried` are unix ms; `undo` has the SHA-256 of a file in its name,
`moved` a hash of the place that a move goes to, or who moves.
Workers of redis-work-queue before 0.3, such as the 0.1 that PyPI and npm still serve, know only
`leased_by_session`, later ones only `lease`. So an item is leased while *either* key exists, and
rwq always sets and deletes *both*: otherwise a cleaner of one generation would take live items from
workers of the other. A lease whose value is `OWN_LEASE…` therefore counts only while both keys hold
it: a client that knows one name has ended it by changing that one.
"""

import re
from collections.abc import Sequence
from fnmatch import translate

from rwq_cli.core.errors import InvalidArgument, text_of

# So begins the holder of a lease that this program took.
OWN_LEASE = b"rwq:"
DELAYED_GUARD = b"rwq-delayed:"
BURIED_GUARD = b"rwq-buried:"
# With this begins the reason of what a move to another server has buried until it has finished.
MOVING = b"being moved"
MOVING_HERE = MOVING + b" here"
SETTLING_GUARD = b"rwq-settling:"
GUARDS = (DELAYED_GUARD, BURIED_GUARD, SETTLING_GUARD)
# The guard of a delayed item outlives its due time by this much: time for rwq to promote it before
# a cleaner in another language may return it.
GUARD_MARGIN_MS = 60_000

# The suffixes of the keys that exist once per queue, with their types, in the order of the KEYS of
# scripts; and what follows the name in those that exist once per ID or file.
STRUCTURE_TYPES = {
    b":queue": "list",
    b":processing": "list",
    b":cleaning": "list",
    b":delayed": "zset",
    b":buried": "zset",
    b":returns": "hash",
}
PER_QUEUE_SUFFIXES = tuple(STRUCTURE_TYPES)
PER_ID_INFIXES = (b":item:", b":lease:", b":leased_by_session:", b":result:", b":undo:")

# Where the keys of one queue look like those of an item, lease or result of another.
_NESTED_NAME = re.compile(
    rb".:(?:%b)(?=:|\Z)" % b"|".join(name.strip(b":") for name in PER_ID_INFIXES), re.DOTALL
)


def is_glob(text: bytes) -> bool:
    """Whether a name is used as a pattern: it has `*` or `?`. Brackets alone are part of a name."""
    return b"*" in text or b"?" in text


def glob_pattern(glob: bytes) -> "re.Pattern[bytes]":
    """Compile a shell glob (`*`, `?`, `[...]`) to a pattern for whole byte strings."""
    # latin-1 maps each byte to one character and back.
    return re.compile(translate(glob.decode("latin-1")).encode("latin-1"), re.DOTALL)


def is_text(item_id: bytes) -> bool:
    """Whether an ID is UTF-8, as workers and cleaners of other languages expect."""
    if item_id.isascii():
        return True
    try:
        item_id.decode()
    except UnicodeDecodeError:
        return False
    return True


class QueueKeys:
    """The key names of one queue, whose name is the prefix of all: any bytes but none."""

    def __init__(self, name: bytes) -> None:
        if not name:
            raise InvalidArgument("the queue's name is empty", "give a name with -q")
        self.name = name
        # The keys that exist once per queue, with the type that each should have.
        self.structures = {name + suffix: kind for suffix, kind in STRUCTURE_TYPES.items()}
        self.main, self.processing, self.cleaning, *others = self.structures
        self.delayed, self.buried, self.returns = others
        self.clean_lock, self.move_lock = name + b":clean-lock", name + b":move-lock"
        # Streams of counts; an entry's ID is its minute, or its hour.
        self.history, self.history_hours = name + b":history", name + b":history:hours"
        self.of_queue = self.clean_lock, self.move_lock, self.history, self.history_hours
        self.moved_prefix = name + b":moved:"
        self.item_prefix = name + b":item:"
        self.lease_prefix = name + b":lease:"
        self.old_lease_prefix = name + b":leased_by_session:"
        self.result_prefix = name + b":result:"
        self.undo_prefix = name + b":undo:"
        self.id_prefixes = self.item_prefix, self.lease_prefix, self.old_lease_prefix
        # While the slot of a queue moves to another node of a cluster, a node refuses what names a
        # key that it does not have. So a script that names this one never runs half.
        self.absent = name + b":absent"
        self.pattern = pattern_of(name + b":")
        # The queues for which this queue's keys look like items, leases or results.
        self.outer_names = [name[: match.start() + 1] for match in _NESTED_NAME.finditer(name)]

    def check_new(self) -> None:
        """Refuse a queue that may be created if its keys look like those of another's items, or if
        its name was probably quoted wrongly."""
        if self.has_odd_ends:
            raise InvalidArgument(
                f"the name of a new queue begins or ends with white space or a quote: "
                f"{text_of(self.name)!a}",
                "remove it, also if it is the newline at the end of a file or a Secret",
            )
        if self.outer_names:
            name, other = text_of(self.name), text_of(self.outer_names[0])
            raise InvalidArgument(
                f"the keys of a queue named {name} would look like items of the queue {other}",
                "name it without :item, :lease, :leased_by_session, :result and :undo",
            )

    @property
    def has_odd_ends(self) -> bool:
        """Whether the name begins or ends with white space or a quote."""
        return self.name != self.name.strip(b" \t\r\n\v\f\"'")

    def item(self, item_id: bytes) -> bytes:
        return self.item_prefix + item_id

    def lease(self, item_id: bytes) -> bytes:
        return self.lease_prefix + item_id

    def old_lease(self, item_id: bytes) -> bytes:
        return self.old_lease_prefix + item_id

    def result(self, item_id: bytes) -> bytes:
        return self.result_prefix + item_id

    # In place of a file: what names a server to undo files. It outlives a purge, which is undone.
    UNDO_SERVER = b"server"

    def undo(self, file_id: bytes) -> bytes:
        return self.undo_prefix + file_id

    def moved(self, place: bytes) -> bytes:
        return self.moved_prefix + place


def pattern_of(prefix: bytes) -> bytes:
    """A SCAN pattern for exactly the keys that begin so: what is special in globs is escaped."""
    return re.sub(rb"[]*?[\\^-]", rb"\\\g<0>", prefix) + b"*"


def is_key_of(key: bytes, names: Sequence[bytes]) -> bool:
    return any(
        key.startswith(tuple(name + infix for infix in PER_ID_INFIXES))
        or key in [name + suffix for suffix in PER_QUEUE_SUFFIXES]
        for name in names
    )


def owner_of_structure(key: bytes, *kinds: str) -> bytes | None:
    """The queue that a key of one of these types is a structure of, or None if it is none."""
    name, colon, word = key.rpartition(b":")
    return name if name and STRUCTURE_TYPES.get(colon + word) in kinds else None


def hash_tag(name: bytes) -> bytes | None:
    """The part of a queue's name that decides its keys' slot in a cluster; None if they differ."""
    _, opened, rest = name.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return tag if opened and closed and tag else None
