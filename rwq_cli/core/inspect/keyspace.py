"""The keys of a queue among all keys of a server; a walk over all of a queue.

A command scans the keys once, and tells by a key's prefix what it is.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import (
    ListCursor,
    ScheduledCursor,
    lengths_of,
    read_first_pages,
)
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.results import KIND_NONE, read_result_keys
from rwq_cli.core.keys import (
    PER_ID_INFIXES,
    PER_QUEUE_SUFFIXES,
    QueueKeys,
    is_key_of,
    owner_of_structure,
    pattern_of,
)
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts

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
    """Whether a key of this ID may belong to a queue with a longer name: `jobs:lease:x:item:1` is
    data in `jobs:lease:x`, and to `jobs` looks like a lease without expiry and without an item."""
    return _MEMBER.search(item_id) is not None


def nested_names(queue: Queue, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """The names of other queues that have a structure among these keys of items, leases, results.

    rwq creates no queue with such a name (see `QueueKeys.check_new`), but other programs may. The
    type of a key tells their structures from the data of an item whose ID ends alike.
    """
    suspects = [key for key in keys if key.endswith(PER_QUEUE_SUFFIXES)]
    types = queue.call_all([("TYPE", key) for key in suspects])
    return _owners(dict(zip(suspects, map(bytes.decode, types), strict=True)))


def _owners(types: Mapping[bytes, str]) -> tuple[bytes, ...]:
    owners = {owner_of_structure(key, kind) for key, kind in types.items()}
    return tuple(sorted(owner for owner in owners if owner is not None))


def unlisted_owners(queue: Queue, ids: Iterable[bytes]) -> tuple[bytes, ...]:
    """The queues without lists whose data these IDs may be, because they are in no structure of
    this one: `jobs:item:x:item:1` is the data of `1` in `jobs:item:x`, or of an item of `jobs` that
    lost its entry."""
    members = {item_id: found for item_id in ids if (found := _MEMBER.search(item_id))}
    owners = {
        (queue.keys.item_prefix + facts.item_id[: members[facts.item_id].start()]).removesuffix(
            b":"
        )
        for facts in facts_of(queue, members)
        if facts.has_data and not facts.is_listed and not facts.has_schedule_entry
    }
    return tuple(sorted(owners))


class KeyNotes:
    """What a walk over all keys of a queue meets besides broken items.

    Keys may belong to a queue whose name begins like this queue's lease or result keys.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        # Keys of items, leases and results of the wrong type, with their types.
        self.wrong: dict[bytes, str] = {}
        # The keys of results; None if this user may not read them.
        self._results: set[bytes] | None = set()
        # How many keys begin with the queue's name and look like those of no queue; the first few.
        self.unowned = 0
        self.examples: list[bytes] = []
        # How many data keys there are, about: SCAN may return a key twice. How many of their items
        # have a count of returns, and the sum of those.
        self.items = self.returned = self.returns = 0

    def add(self, page: Sequence[bytes]) -> list[bytes]:
        """Note a page of keys; return the IDs of leases."""
        queue, keys = self._queue, self._queue.keys
        strings = [key for key in page if key.startswith(keys.id_prefixes)]
        for _, reply in queue.read_each("wrong_types", in_batches(strings, items_max=_TYPES)):
            self.wrong.update(zip(reply[::2], map(bytes.decode, reply[1::2]), strict=True))
        self._note_results(ids_of(page, keys.result_prefix))
        ours, own = (*keys.id_prefixes, keys.result_prefix, keys.undo_prefix), keys.structures
        for key in page:
            # The keys of a queue named `jobs:high` are not foreign.
            if not (key.startswith(ours) or key in own or key == keys.clean_lock) and (
                _OWNED.search(key, len(keys.name) + 1) is None
            ):
                self.unowned += 1
                if len(self.examples) < EXAMPLES and key not in self.examples:
                    self.examples.append(key)
        leased = dict.fromkeys(ids_of(page, keys.lease_prefix, keys.old_lease_prefix))
        return [item_id for item_id in leased if not may_be_in_nested_queue(item_id)]

    def _note_results(self, ids: Sequence[bytes]) -> None:
        if self._results is None:
            return
        try:
            for batch in read_result_keys(self._queue, ids):
                for each in batch:
                    key = self._queue.keys.result(each.item_id)
                    if each.result:
                        self._results.add(key)
                    elif each.kind != KIND_NONE:
                        self.wrong[key] = each.kind
        except PermissionDenied:
            self._results = None

    @property
    def nested(self) -> tuple[bytes, ...]:
        return _owners(self.wrong)

    def wrong_keys(self) -> list[bytes]:
        """The keys of the wrong type that belong to no other queue."""
        nested = self.nested
        return [key for key in self.wrong if not is_key_of(key, nested)]

    def count_results(self) -> int | None:
        """How many results there are; None if this user may not read them."""
        nested = self.nested
        if self._results is None:
            return None
        return sum(not is_key_of(key, nested) for key in self._results)


def shadowed_by_name(queue: Queue) -> list[bytes]:
    """The queues that exist, and for which this queue's keys look like items or leases."""
    outer = [QueueKeys(name) for name in queue.keys.outer_names]
    exist = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, exist, strict=True) if count]


OnFacts = Callable[[Facts], object]
# Receives pages of the keys that begin with the queue's name and a colon.
OnKeys = Callable[[list[bytes]], object]


def survey_facts(
    queue: Queue,
    *,
    on_listed: OnFacts | None = None,
    on_keys: OnKeys | None = None,
    notes: KeyNotes | None = None,
) -> Iterator[Facts]:
    """The facts about every ID that may be broken in a way that no single structure shows.

    The walk reads the lists and sorted sets, then once all keys. Then it looks up each ID that was
    listed twice, or not at all, or without data. Only this lookup decides. It comes after the keys
    were read, so an item that is added, leased or completed during the walk is found in its new
    place. The second look of a clean covers the rest.

    All listed IDs are kept until their data keys are found: about 115 bytes for an ID of 32 bytes.
    Hashes would take less, but a collision could hide an orphan or a ghost.

    `on_listed` receives the facts about each ID in processing or in a sorted set, as if it were
    nowhere else; `on_keys` pages of all keys under the queue's prefix; `notes` the totals.
    """
    notes = notes or KeyNotes(queue)
    listed, suspects = _walk_structures(queue, on_listed)
    unlisted = _walk_keys(queue, listed, on_keys, notes)
    # The remaining IDs are listed and have no data.
    suspects.update(dict.fromkeys(listed))
    listed.clear()
    suspects.update(dict.fromkeys(unlisted))
    done: set[bytes] = set()
    for page in queue.connection.scan_members("HSCAN", queue.keys.returns):
        # HSCAN may return a field twice.
        fresh = [item_id for item_id in page if item_id not in done]
        done.update(fresh)
        for facts in probe(queue, fresh):
            if facts.has_stale_returns or facts.has_invalid_returns:
                suspects[facts.item_id] = None
            if facts.has_data:
                notes.returned += 1
                notes.returns += facts.returns or 0
    yield from facts_of(queue, suspects.keys(), digests=True)


def _walk_structures(
    queue: Queue, on_listed: OnFacts | None
) -> tuple[set[bytes], dict[bytes, None]]:
    """All listed IDs; and those among them that are listed twice or empty, or are in cleaning."""
    lists = queue.keys.main, queue.keys.processing
    queue.progress.begin("reading the lists", lengths_of(queue, *lists))
    main, processing, cleaning = (ListCursor(queue, key) for key in (*lists, queue.keys.cleaning))
    zsets = [ScheduledCursor(queue, name) for name in ("delayed", "buried")]
    read_first_pages(queue, main, processing, cleaning, *zsets)
    listed: set[bytes] = set()
    suspects: dict[bytes, None] = {}
    looked_at: set[bytes] = set()
    for source in (main, processing, *zsets):
        known = {"in_processing": source is processing, "digests": source is processing}
        for page in source:
            if not listed.isdisjoint(page):
                suspects.update((item_id, None) for item_id in page if item_id in listed)
            listed.update(page)
            if len(set(page)) < len(page):
                repeated = (item_id for item_id, n in Counter(page).items() if n > 1)
                suspects.update(dict.fromkeys(repeated))
            if on_listed is not None and source is not main:
                fresh = [item_id for item_id in dict.fromkeys(page) if item_id not in looked_at]
                looked_at.update(fresh)
                for facts in probe(queue, fresh, **known):
                    on_listed(facts)
    if b"" in listed:
        suspects[b""] = None
    for page in cleaning:
        suspects.update(dict.fromkeys(page))
    return listed, suspects


def _walk_keys(
    queue: Queue, listed: set[bytes], on_keys: OnKeys | None, notes: KeyNotes
) -> Iterable[bytes]:
    """Remove the IDs that have data from `listed`; return those that are not listed, without those
    of another queue whose name begins like a data key.

    SCAN may return a key twice, and then its ID is among those that are not listed, too; the
    lookup that follows finds its entry.
    """
    queue.progress.begin("reading the keys")
    keys = queue.keys
    unlisted: list[bytes] = []
    pattern = pattern_of(keys.item_prefix) if on_keys is None else keys.pattern
    for page in queue.connection.scan_keys(pattern):
        ids = ids_of(page, keys.item_prefix)
        notes.items += len(ids)
        queue.progress.advance(len(ids))
        if not listed.issuperset(ids):
            unlisted += (item_id for item_id in ids if item_id not in listed)
        # After many removals, `difference_update` copies the set, which doubles the peak memory.
        for item_id in ids:
            listed.discard(item_id)
        if on_keys is not None:
            on_keys(page)
    nested = nested_names(queue, map(keys.item, unlisted))
    return (i for i in unlisted if not (nested and is_key_of(keys.item(i), nested)))
