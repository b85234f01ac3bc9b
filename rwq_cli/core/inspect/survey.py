"""A walk over a whole queue, to find orphans, ghosts and duplicates."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, ListCursor, lengths_of, walk_processing
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.nested_queues import names_among
from rwq_cli.core.keys import PER_QUEUE_SUFFIXES, is_key_of
from rwq_cli.core.model import State
from rwq_cli.core.server.scan import scan_keys, scan_members
from rwq_cli.core.state.probe import probe
from rwq_cli.core.state.rules import Facts
from rwq_cli.core.state.seen import Seen

# Receives pages of keys that are not data keys.
Others = Callable[[list[bytes]], object]


@dataclass(slots=True)
class Survey:
    """The IDs that a walk found to be broken, each once.

    Attributes:
        orphaned: Items in no list or sorted set, without a lease.
        unlisted: Items in no list or sorted set, with a lease that ends.
        held: Items in no list or sorted set, with a lease without expiry.
        main_ghosts: IDs in main without data.
        processing_ghosts: IDs in processing without data.
        scheduled_ghosts: IDs in the delayed or buried sorted set without data, with the set's name.
        duplicated: Items in main more than once, or in main and in processing.
        stale_cleaning: IDs in the list of a 0.1 cleaner that are in another structure, with the
            state, or have no data, with `GHOST`.
        stale_schedule: Items in main or in processing that are also in the delayed or buried sorted
            set, with the set's name.
        stale_returns: IDs with a count of returns that have no data.
        seen: The orphaned and duplicated items, so that the second look recognizes them.
    """

    orphaned: list[bytes] = field(default_factory=list)
    unlisted: list[bytes] = field(default_factory=list)
    held: list[bytes] = field(default_factory=list)
    main_ghosts: list[bytes] = field(default_factory=list)
    processing_ghosts: list[bytes] = field(default_factory=list)
    scheduled_ghosts: list[tuple[bytes, str]] = field(default_factory=list)
    duplicated: list[bytes] = field(default_factory=list)
    stale_cleaning: list[tuple[bytes, State]] = field(default_factory=list)
    stale_schedule: list[tuple[bytes, str]] = field(default_factory=list)
    stale_returns: list[bytes] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen, compare=False)

    @property
    def is_broken(self) -> bool:
        """Whether there is anything for a deep clean to repair."""
        return bool(
            self.orphaned
            or self.main_ghosts
            or self.processing_ghosts
            or self.scheduled_ghosts
            or self.duplicated
            or self.stale_cleaning
            or self.stale_schedule
            or self.stale_returns
        )

    @property
    def ghosts(self) -> set[bytes]:
        """All IDs in a list or sorted set that have no data."""
        scheduled = (item_id for item_id, _ in self.scheduled_ghosts)
        return {*self.main_ghosts, *self.processing_ghosts, *scheduled}

    def add(self, facts: Facts) -> None:
        """Add an ID to the lists that apply to it."""
        item_id, state = facts.item_id, facts.state
        if facts.has_schedule_entry:
            self._add_entries(facts, state)
        if state is State.GHOST and facts.in_main:
            self.main_ghosts.append(item_id)
        if state is State.GHOST and facts.in_processing:
            self.processing_ghosts.append(item_id)
        if facts.is_stale_in_cleaning:
            self.stale_cleaning.append((item_id, state if facts.has_data else State.GHOST))
        if facts.has_stale_returns:
            self.stale_returns.append(item_id)
        if state is State.ORPHANED:
            self.orphaned.append(item_id)
            self.seen.note(item_id, facts.identity)
        elif state is State.UNLISTED:
            self.unlisted.append(item_id)
        elif state is State.DUPLICATED:
            self.duplicated.append(item_id)
            self.seen.note(item_id, facts.identity)
        elif state is State.HELD and not facts.in_processing:
            self.held.append(item_id)

    def _add_entries(self, facts: Facts, state: State) -> None:
        for name, score in (("delayed", facts.due_ms), ("buried", facts.buried_ms)):
            if score is None:
                continue
            if state is State.GHOST:
                self.scheduled_ghosts.append((facts.item_id, name))
            elif facts.has_stale_schedule:
                self.stale_schedule.append((facts.item_id, name))


@dataclass(slots=True)
class Totals:
    """Totals of a walk.

    Attributes:
        items: How many data keys SCAN returned, which may return a key twice.
        returned: How many items have a count of returns.
        returns: The sum of those counts.
    """

    items: int = 0
    returned: int = 0
    returns: int = 0


def survey(queue: Queue, others: Others | None = None, totals: Totals | None = None) -> Survey:
    """Walk over the whole queue to find broken IDs; see `survey_facts`."""
    found = Survey()
    for facts in survey_facts(queue, others, totals):
        found.add(facts)
    return found


def survey_facts(
    queue: Queue, others: Others | None = None, totals: Totals | None = None
) -> Iterator[Facts]:
    """The facts about every ID that may be broken in a way that no single list shows.

    The walk reads the lists and sorted sets, then the data keys. Then it looks up each ID that was
    listed twice, or not at all, or without data. Only this lookup decides. It comes after the data
    keys were read, so an item that is added, leased or completed during the walk is found in its
    new place. The second look of a clean covers the rest.

    The walk keeps all listed IDs until it finds their data keys: about 115 bytes for an ID of 32
    bytes. Hashes would take less, but a collision could hide an orphan or a ghost.

    Args:
        queue: The queue.
        others: Receives pages of all other keys under the queue's prefix.
        totals: Receives the totals.

    Yields:
        The facts about each ID that was looked up, including healthy ones.
    """
    totals = totals or Totals()
    entries = lengths_of(queue, queue.keys.main, queue.keys.processing)
    queue.progress.begin("reading the lists", entries)
    listed, suspects = _walk_lists(queue)
    queue.progress.begin("reading the data keys")
    unlisted = _walk_data(queue, listed, others, totals)
    # The remaining IDs are listed and have no data.
    suspects.update(dict.fromkeys(listed))
    listed.clear()
    suspects.update(dict.fromkeys(_without_nested_queues(queue, unlisted)))
    for page in ListCursor(queue, queue.keys.cleaning, from_left=True):
        suspects.update(dict.fromkeys(page))
    for facts in returned_items(queue):
        if facts.has_stale_returns or facts.has_invalid_returns:
            suspects[facts.item_id] = None
        if facts.has_data:
            totals.returned += 1
            totals.returns += facts.returns or 0
    yield from facts_of(queue, suspects.keys(), main_twice=False, identities=True)


def _walk_lists(queue: Queue) -> tuple[set[bytes], dict[bytes, None]]:
    """All listed IDs, and those among them that are listed twice or empty."""
    listed: set[bytes] = set()
    suspects: dict[bytes, None] = {}
    for page in _locations(queue):
        before = len(listed)
        if not listed.isdisjoint(page):
            suspects.update((item_id, None) for item_id in page if item_id in listed)
        listed.update(page)
        if len(listed) - before < len(page):
            suspects.update((item_id, None) for item_id, n in Counter(page).items() if n > 1)
    if b"" in listed:
        suspects[b""] = None
    return listed, suspects


def _locations(queue: Queue) -> Iterator[list[bytes]]:
    """Pages of all IDs in lists and sorted sets, in the direction in which items move."""
    yield from ListCursor(queue, queue.keys.main, from_left=True, page_size=WALK_ENTRIES)
    yield from walk_processing(queue, page_size=WALK_ENTRIES)
    yield from scheduled_ids(queue)


def scheduled_ids(queue: Queue) -> Iterator[list[bytes]]:
    """Pages of the IDs in the delayed and buried sorted sets; ZSCAN may return an ID twice."""
    for key in (queue.keys.delayed, queue.keys.buried):
        yield from scan_members(queue.connection, "ZSCAN", key)


def scan_ids(queue: Queue, others: Others | None = None) -> Iterator[list[bytes]]:
    """The IDs of all data keys, in pages; SCAN may return an ID twice.

    `others` receives pages of all other keys under the queue's prefix.
    """
    keys, length = queue.keys, len(queue.keys.item_prefix)
    pattern = keys.item_pattern if others is None else keys.pattern
    for page in scan_keys(queue.connection, pattern):
        if others is None:
            ids = [key[length:] for key in page]
        else:
            ids = [key[length:] for key in page if key.startswith(keys.item_prefix)]
            if len(ids) < len(page):
                others([key for key in page if not key.startswith(keys.item_prefix)])
        if ids:
            queue.progress.advance(len(ids))
            yield ids


def _walk_data(
    queue: Queue, listed: set[bytes], others: Others | None, totals: Totals
) -> list[bytes]:
    """Remove the IDs that have data from `listed`; return those that are not listed.

    SCAN may return a key twice, and then its ID is among those that are not listed, too; the
    lookup that follows finds its entry.
    """
    unlisted: list[bytes] = []
    for page in scan_ids(queue, others):
        totals.items += len(page)
        if not listed.issuperset(page):
            unlisted += (item_id for item_id in page if item_id not in listed)
        # After many removals, `difference_update` copies the set, which doubles the peak memory.
        for item_id in page:
            listed.discard(item_id)
    return unlisted


def _without_nested_queues(queue: Queue, ids: Sequence[bytes]) -> Iterator[bytes]:
    """The IDs, without those of nested queues, whose keys look like this queue's data keys."""
    keys = queue.keys
    like_structures = [keys.item(i) for i in ids if keys.item(i).endswith(PER_QUEUE_SUFFIXES)]
    nested = names_among(queue.connection, like_structures)
    return (i for i in ids if not (nested and is_key_of(keys.item(i), nested)))


def find_unguarded(queue: Queue) -> list[bytes]:
    """The delayed and buried items whose guard is missing or weak."""
    return [
        facts.item_id
        for page in scheduled_ids(queue)
        for facts in probe(queue, dict.fromkeys(page))
        if facts.is_unguarded
    ]


def returned_items(queue: Queue) -> Iterator[Facts]:
    """The facts about each ID that has a count of returns, without its places in the lists."""
    done: set[bytes] = set()
    for page in scan_members(queue.connection, "HSCAN", queue.keys.returns):
        # HSCAN may return a field twice.
        fresh = [item_id for item_id in page if item_id not in done]
        done.update(fresh)
        yield from probe(queue, fresh)


def stale_returns(queue: Queue) -> Iterator[bytes]:
    """The IDs with a count of returns that have no data."""
    return (facts.item_id for facts in returned_items(queue) if facts.has_stale_returns)
