"""The keys of a queue among all keys of a server.

A command scans the keys once, and tells by a key's prefix what it is.
"""

import re
from collections.abc import Iterable, Sequence

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.results import KIND_NONE, KIND_RESULT, read_result_keys
from rwq_cli.core.keys import (
    PER_ID_INFIXES,
    PER_QUEUE_SUFFIXES,
    QueueKeys,
    is_key_of,
    owner_of_structure,
)

EXAMPLES = 5
# Keys of which one call reads the types, in about two milliseconds.
_TYPES = 4000
# Without their colons.
_SUFFIXES = b"|".join(name.strip(b":") for name in PER_QUEUE_SUFFIXES)
_INFIXES = b"|".join(name.strip(b":") for name in PER_ID_INFIXES)
_MEMBER = re.compile(rb"(?:\A|:)(?:%b):" % _INFIXES)
_OWNED = re.compile(rb":(?:(?:%b)\Z|(?:%b):)" % (_SUFFIXES, _INFIXES), re.DOTALL)


def ids_of(keys: Iterable[bytes], *prefixes: bytes) -> list[bytes]:
    """The IDs in those keys that have one of these prefixes: data, leases or results."""
    return [key[len(prefix) :] for key in keys for prefix in prefixes if key.startswith(prefix)]


def may_be_in_nested_queue(item_id: bytes) -> bool:
    """Whether a key that looks like a lease on this ID may belong to a queue with a longer name.

    A queue named `jobs:lease:x` has data at `jobs:lease:x:item:1`. To `jobs`, that looks like a
    lease without expiry and without an item.
    """
    return _MEMBER.search(item_id) is not None


def nested_names(queue: Queue, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """The names of other queues that have a structure among these keys of items, leases, results.

    rwq creates no queue with such a name (see `QueueKeys.check_new`), but other programs may. The
    type of a key tells their structures from the data of an item whose ID ends alike.
    """
    suspects = [key for key in keys if key.endswith(PER_QUEUE_SUFFIXES)]
    types = queue.call_all([("TYPE", key) for key in suspects])
    pairs = zip(suspects, map(bytes.decode, types), strict=True)
    owners = (owner_of_structure(*each) for each in pairs)
    return tuple(sorted({owner for owner in owners if owner}))


def names_of_unlisted(queue: Queue, ids: Iterable[bytes]) -> dict[bytes, None]:
    """The names of queues without lists whose data these IDs may be, because they are in no
    structure of this queue: `jobs:item:x:item:1` is the data of `1` in `jobs:item:x`, or of an
    item of `jobs` that lost its entry.
    """
    suspects = [item_id for item_id in ids if may_be_in_nested_queue(item_id)]
    return {
        owner_of_data(queue.keys, facts.item_id): None
        for facts in facts_of(queue, suspects)
        if facts.has_data and not (facts.is_listed or facts.has_schedule_entry)
    }


def owner_of_data(keys: QueueKeys, item_id: bytes) -> bytes:
    """The queue whose data this ID's may be: see `names_of_unlisted`."""
    at = next(match.start() for match in _MEMBER.finditer(item_id))
    return (keys.item_prefix + item_id[:at]).removesuffix(b":")


class KeyNotes:
    """What a walk over all keys of a queue meets besides data and entries.

    Keys may belong to a queue whose name begins like this queue's lease or result keys.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        # Keys of items, leases and results of the wrong type, with their types.
        self.wrong: dict[bytes, str] = {}
        # The IDs of results; None if this user may not read them.
        self.results: set[bytes] | None = set()
        # How many keys begin with the queue's name and look like those of no queue; the first few.
        self.unowned = 0
        self.examples: list[bytes] = []

    def add(self, page: Sequence[bytes]) -> list[bytes]:
        """Note a page of keys; return the IDs of leases."""
        queue, keys = self._queue, self._queue.keys
        strings = [key for key in page if key.startswith(keys.id_prefixes)]
        for _, reply in queue.read_each("wrong_types", in_batches(strings, items_max=_TYPES)):
            pairs = zip(reply[::2], reply[1::2], strict=True)
            self.wrong.update((key, kind.decode()) for key, kind in pairs)
        self._note_results(ids_of(page, keys.result_prefix))
        self._note_unowned(page)
        leased = dict.fromkeys(ids_of(page, keys.lease_prefix, keys.old_lease_prefix))
        return [item_id for item_id in leased if not may_be_in_nested_queue(item_id)]

    def _note_results(self, ids: Sequence[bytes]) -> None:
        if self.results is None:
            return
        key_of = self._queue.keys.result
        try:
            for batch in read_result_keys(self._queue, ids):
                self.results.update(each.item_id for each in batch if each.result)
                self.wrong.update(
                    (key_of(each.item_id), each.kind)
                    for each in batch
                    if each.kind not in (KIND_NONE, KIND_RESULT)
                )
        except PermissionDenied:
            self.results = None

    @property
    def nested(self) -> tuple[bytes, ...]:
        """The names of other queues that have a structure among the keys."""
        owners = (owner_of_structure(*each) for each in self.wrong.items())
        return tuple(dict.fromkeys(owner for owner in owners if owner))

    def wrong_keys(self) -> list[bytes]:
        """The keys of the wrong type that belong to no other queue."""
        nested = self.nested
        return [key for key in self.wrong if not is_key_of(key, nested)]

    def count_results(self) -> int | None:
        """How many results there are; None if this user may not read them."""
        nested, key_of = self.nested, self._queue.keys.result
        if self.results is None:
            return None
        return sum(not is_key_of(key_of(item_id), nested) for item_id in self.results)

    def _note_unowned(self, page: Sequence[bytes]) -> None:
        keys = self._queue.keys
        ours, own = (*keys.id_prefixes, keys.result_prefix, keys.undo_prefix), keys.structures
        for key in page:
            if key.startswith(ours) or key in own or key == keys.clean_lock:
                continue
            # The keys of a queue named `jobs:high` are not foreign.
            if _OWNED.search(key, len(keys.name) + 1) is None:
                self.unowned += 1
                if len(self.examples) < EXAMPLES and key not in self.examples:
                    self.examples.append(key)


def shadowed_by_name(queue: Queue) -> list[bytes]:
    """The queues that exist, and for which this queue's keys look like items or leases."""
    outer = [QueueKeys(name) for name in queue.keys.outer_names]
    exist = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, exist, strict=True) if count]
