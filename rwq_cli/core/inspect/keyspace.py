"""The keys of a queue among all keys of a server, which a command scans once: a key's prefix tells
what it is; and a walk over all of a queue."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor, lengths_of, read_first_pages
from rwq_cli.core.inspect.lookup import facts_of, types_of
from rwq_cli.core.inspect.results import KIND_NONE, read_result_keys
from rwq_cli.core.keys import (
    PER_ID_INFIXES,
    PER_QUEUE_SUFFIXES,
    QueueKeys,
    is_key_of,
    is_text,
    owner_of_structure,
    pattern_of,
)
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.reads import read_facts
from rwq_cli.core.state.rules import Facts

EXAMPLES = 5
# For more keys than these, a page is scanned again for strings, which costs less than their types.
_FEW_TYPES = 50
# Without their colons.
_SUFFIXES = b"|".join(name.strip(b":") for name in PER_QUEUE_SUFFIXES)
_INFIXES = b"|".join(name.strip(b":") for name in PER_ID_INFIXES)
_MEMBER = re.compile(rb"(?:\A|:)(?:%b):" % _INFIXES)
_OWNED = re.compile(rb":(?:(?:%b)\Z|(?:%b):)" % (_SUFFIXES, _INFIXES), re.DOTALL)


def ids_of(keys: Sequence[bytes], *prefixes: bytes) -> list[bytes]:
    """The IDs in those keys that have one of these prefixes: data, leases or results."""
    lengths = [(prefix, len(prefix)) for prefix in prefixes]
    return [key[at:] for prefix, at in lengths for key in keys if key.startswith(prefix)]


def may_be_in_nested_queue(item_id: bytes) -> bool:
    """Whether a key of this ID may belong to a queue with a longer name: `jobs:lease:x:item:1` is
    data in `jobs:lease:x`, and to `jobs` looks like a lease without expiry and without an item."""
    return _MEMBER.search(item_id) is not None


def nested_names(queue: Queue, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """The names of other queues, which rwq did not create (see `QueueKeys.check_new`), that have a
    structure among these keys of items, leases, results. Its type tells it from the data of an item
    whose ID ends alike."""
    return _owners(types_of(queue, (key for key in keys if key.endswith(PER_QUEUE_SUFFIXES))))


def _owners(types: Mapping[bytes, str]) -> tuple[bytes, ...]:
    owners = {owner_of_structure(key, kind) for key, kind in types.items()}
    return tuple(sorted(owner for owner in owners if owner is not None))


def unlisted_owners(queue: Queue, ids: Iterable[bytes]) -> tuple[bytes, ...]:
    """The queues without lists whose data these IDs may be, because they are in no structure of
    this one: `jobs:item:x:item:1` is the data of `1` in `jobs:item:x`, or of an item of `jobs` that
    lost its entry."""
    ends = {item_id: match.start() for item_id in ids if (match := _MEMBER.search(item_id))}
    owners = {
        queue.keys.item_prefix + facts.item_id[: ends[facts.item_id]]
        for facts in facts_of(queue, ends)
        if facts.has_data and not (facts.is_listed or facts.has_schedule_entry)
    }
    return tuple(sorted(owner.removesuffix(b":") for owner in owners))


def shadowed_by_name(queue: Queue) -> list[bytes]:
    """The queues that exist, and for which this queue's keys look like items or leases."""
    outer = [QueueKeys(name) for name in queue.keys.outer_names]
    exist = queue.call_all([("EXISTS", *other.structures) for other in outer])
    return [other.name for other, count in zip(outer, exist, strict=True) if count]


class Survey:
    """One walk over all of a queue, for what no single structure shows.

    `on_listed` receives the facts about each ID in processing or in a sorted set, as if it were
    nowhere else; `pulse` is called for each page. With `on_leased`, which receives the IDs of
    leases, not only the keys of items are read, but all under the queue's prefix.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        on_listed: Callable[[Facts], object] | None = None,
        on_leased: Callable[[list[bytes]], object] | None = None,
        pulse: Callable[[], object] = lambda: None,
    ) -> None:
        self._queue, self._pulse = queue, pulse
        self._on_listed, self._on_leased = on_listed, on_leased
        # Keys of items, leases and results of the wrong type, with their types.
        self.wrong: dict[bytes, str] = {}
        # The keys of results; None if this user may not read them.
        self.results: set[bytes] | None = set()
        # How many keys begin with the queue's name and look like those of no queue; the first few.
        self.unowned = 0
        self.examples: list[bytes] = []
        # Whether there were counts of returns when the walk began.
        self._has_returns = False
        # How many data keys there are, about: SCAN may return a key twice. How many of their items
        # have a count of returns, and the sum of those.
        self.items = self.returned = self.returns = 0

    def facts(self) -> Iterator[Facts]:
        """The facts about every ID that may be broken.

        The walk reads the lists and sorted sets, then once the keys. Then it looks up each ID that
        was listed twice, or not at all, or without data, which is found in its new place if it was
        added, leased or completed during the walk. The second look of a clean covers the rest.

        All listed IDs are kept until their data keys are found: about 115 bytes for an ID of 32
        bytes. Hashes would take less, but a collision could hide an orphan or a ghost.
        """
        listed, suspects = self._walk_structures()
        unlisted = self._walk_keys(listed)
        # The remaining IDs are listed and have no data.
        suspects.update(dict.fromkeys(listed))
        listed.clear()
        suspects.update(dict.fromkeys(unlisted))
        done: set[bytes] = set()
        counts = self._queue.connection.scan(("HSCAN", self._queue.keys.returns))
        for _, page in counts if self._has_returns else ():
            # Fields and values in turn; some perhaps twice.
            fresh = [item_id for item_id in page[::2] if item_id not in done]
            done.update(fresh)
            for facts in read_facts(self._queue, fresh):
                is_often = facts.is_often_returned and self._on_listed is not None
                if facts.has_stale_returns or facts.has_invalid_returns or is_often:
                    suspects[facts.item_id] = None
                self.returned += facts.has_data
                self.returns += (facts.has_data and facts.returns) or 0
        yield from facts_of(self._queue, suspects.keys(), digests=True)

    def _walk_structures(self) -> tuple[set[bytes], dict[bytes, None]]:
        """All listed IDs; and those that are listed twice, empty or no text, or are in cleaning."""
        queue, keys = self._queue, self._queue.keys
        queue.progress.begin("reading the lists", lengths_of(queue, keys.main, keys.processing))
        lists = [ListCursor(queue, key) for key in (keys.main, keys.processing, keys.cleaning)]
        main, processing, cleaning = lists
        zsets = [ScheduledCursor(queue, name) for name in ("delayed", "buried")]
        before = (("EXISTS", keys.returns),)
        (self._has_returns,) = read_first_pages(queue, *lists, *zsets, before=before)
        listed: set[bytes] = set()
        suspects: dict[bytes, None] = {}
        looked_at: set[bytes] = set()
        for source in (main, processing, *zsets):
            is_leased = source is processing
            for page in source:
                self._pulse()
                expected = len(listed) + len(page)
                if not listed.isdisjoint(page):
                    suspects.update((item_id, None) for item_id in page if item_id in listed)
                listed.update(page)
                if len(listed) < expected:
                    suspects.update((i, None) for i, times in Counter(page).items() if times > 1)
                if self._on_listed is not None and not b"".join(page).isascii():
                    suspects.update((i, None) for i in page if not is_text(i))
                if self._on_listed is not None and source is not main:
                    entries = dict.fromkeys(page)
                    fresh = [item_id for item_id in entries if item_id not in looked_at]
                    looked_at.update(fresh)
                    for facts in read_facts(
                        queue, fresh, in_processing=is_leased, digests=is_leased
                    ):
                        self._on_listed(facts)
        if b"" in listed:
            suspects[b""] = None
        for page in cleaning:
            suspects.update(dict.fromkeys(page))
        return listed, suspects

    def _walk_keys(self, listed: set[bytes]) -> Iterable[bytes]:
        """Remove the IDs that have data from `listed`; return those that are not listed, without
        those of another queue whose name begins like a data key. SCAN may return a key twice, and
        then its ID is among them, too; the lookup that follows finds its entry."""
        queue, keys = self._queue, self._queue.keys
        queue.progress.begin("reading the keys")
        unlisted: list[bytes] = []
        pattern = pattern_of(keys.item_prefix) if self._on_leased is None else keys.pattern
        for command, page in queue.connection.scan(("SCAN",), "MATCH", pattern):
            self._pulse()
            ids = ids_of(page, keys.item_prefix)
            self.items += len(ids)
            queue.progress.advance(len(ids))
            if not listed.issuperset(ids):
                unlisted += [item_id for item_id in ids if item_id not in listed]
            # After many removals, `difference_update` copies the set, which doubles the peak
            # memory.
            deque(map(listed.discard, ids), maxlen=0)
            if self._on_leased is not None:
                self._note_types(command, page)
                if len(ids) < len(page):
                    others = [key for key in page if not key.startswith(keys.item_prefix)]
                    leased = dict.fromkeys(ids_of(others, keys.lease_prefix, keys.old_lease_prefix))
                    self._on_leased([i for i in leased if not may_be_in_nested_queue(i)])
                    self._note_others(others)
        nested = nested_names(queue, map(keys.item, unlisted))
        return (i for i in unlisted if not (nested and is_key_of(keys.item(i), nested)))

    def _note_types(self, command: Command, page: Sequence[bytes]) -> None:
        """Note keys of the wrong type in a page, which the command has read."""
        queue, strings = self._queue, list[bytes]()
        if len(page) > _FEW_TYPES:
            _, strings = queue.call(*command, "TYPE", "string")
        if page != strings:
            prefixes, of_strings = queue.keys.id_prefixes, set(strings)
            types = types_of(
                queue, (k for k in page if k not in of_strings and k.startswith(prefixes))
            )
            self.wrong.update((k, t) for k, t in types.items() if t not in ("string", "none"))

    def _note_others(self, page: Sequence[bytes]) -> None:
        keys = self._queue.keys
        self._note_results(ids_of(page, keys.result_prefix))
        prefixes = (*keys.id_prefixes, keys.result_prefix, keys.undo_prefix, keys.moved_prefix)
        names = {*keys.structures, *keys.of_queue}
        for key in page:
            # The keys of a queue named `jobs:high` are not foreign.
            if not (key.startswith(prefixes) or key in names) and (
                _OWNED.search(key, len(keys.name) + 1) is None
            ):
                self.unowned += 1
                if len(self.examples) < EXAMPLES and key not in self.examples:
                    self.examples.append(key)

    def _note_results(self, ids: Sequence[bytes]) -> None:
        if self.results is None:
            return
        try:
            for batch in read_result_keys(self._queue, ids):
                for result_key in batch:
                    key = self._queue.keys.result(result_key.item_id)
                    if result_key.result:
                        self.results.add(key)
                    elif result_key.kind != KIND_NONE:
                        self.wrong[key] = result_key.kind
        except PermissionDenied:
            self.results = None

    @property
    def nested(self) -> tuple[bytes, ...]:
        return _owners(self.wrong)

    def without_nested(self, keys: Iterable[bytes]) -> list[bytes]:
        """Leave out keys of queues whose names begin like a lease or a result."""
        nested = self.nested
        return [key for key in keys if not is_key_of(key, nested)]
