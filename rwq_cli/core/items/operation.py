"""Acting on any number of items by a script, wherever they are in the lists."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain

from rwq_cli.core.batches import BLOCK_IDS, BUDGET, Budget, Flush, acknowledged, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import look_twice
from rwq_cli.core.inspect.places import Places, rounds
from rwq_cli.core.items.journal import Journal, recorded
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import ANY, Expected, hashed_bytes, with_data
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshots import End, ItemSnapshot, Skipped, read_snapshots

# Calls whose items are written at once, and which are then sent together.
GROUP_CALLS = 24
_REMOVING = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# Matches no data.
_OTHER_DATA = b"0:0"
# The arguments of a script, besides those of `Located` and `Expected`; perhaps for these IDs.
Args = Mapping[str, object] | Callable[[Sequence[bytes]], Mapping[str, object]]


@dataclass
class Operation:
    """What a verb does to items, by a script; to be run once.

    Attributes:
        queue: The queue that has the items.
        script: The name of the script.
        args: Its arguments.
        doing: What the progress line says.
        expected: The conditions that the items must still meet.
        journal: Items are read, and written to it, before they are acted on; one that differs from
            what was read is `CHANGED`.
        keeps_leased: Leased items are left alone, and not written to the journal.
        as_saved: Gives the state in which an item of the journal is to be restored.
        grace_s: The time between two looks at items that may be in transit, unless they were looked
            at twice when they were chosen. None if it does not take items from their workers.
        at_once: All IDs are read, and looked at, before the first is acted on, so that they are
            acted on in their order.
        block_ids: How many IDs a block has at most: the lists are read once for each.
        bytes_each: How much the script writes for each item, besides what it copies.
        dry_run: Whether the script changes nothing.
    """

    queue: Queue
    script: str
    args: Args
    doing: str = ""
    expected: Expected = ANY
    _: KW_ONLY
    journal: Journal | None = None
    keeps_leased: bool = False
    as_saved: Callable[[ItemSnapshot], ItemSnapshot] = lambda item: item
    grace_s: float | None = None
    at_once: bool = False
    block_ids: int = BLOCK_IDS
    bytes_each: int = 0
    dry_run: bool = False
    # Whether what is saved of main is nearer to the end of the queue.
    _is_past_middle: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.dry_run or self.reads_first:
            # Before anything is read, which might reset the ages of items.
            keeps_ages = self.queue.connection.set_no_touch()
            if self.reads_first and not keeps_ages:
                self.expected = self.expected._replace(age_s=None)

    @property
    def reads_first(self) -> bool:
        """Whether items are read before they are acted on."""
        return self.journal is not None and not self.dry_run

    def run(self, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
        """Act on a stream of IDs: one outcome for each distinct ID of a block, in the given order
        if there are few.

        A block ends with a `FLUSH`, or after `block_ids`: an ID that is repeated later may name a
        new item by then.
        """
        # Also if there are no IDs: an untagged name on a cluster must not look like an empty queue.
        self.queue.check_one_slot()
        blocks: Iterable[list[bytes]] = in_batches(ids, items_max=self.block_ids)
        if self.at_once:
            blocks = [[item_id for item_id in ids if not isinstance(item_id, Flush)]]
        run_block = self.run_block if self.grace_s is None else self._run_twice
        batches = (batch for block in blocks for batch in run_block(block))
        yield from acknowledged(self.queue.progress, filter(len, batches))

    def run_block(
        self,
        ids: Iterable[bytes],
        places: Places | None = None,
        *,
        looked_twice: Collection[bytes] | None = None,
    ) -> Iterator[OutcomeBatch]:
        """Act on some IDs, wherever they are by now, until each has an outcome; see `Located` for
        `looked_twice`."""
        pending = dict.fromkeys(ids)
        calls = rounds(self.queue, pending, self.doing, in_order=self.at_once, places=places)
        for call in calls:
            for batch in self.act([call._replace(looked_twice=looked_twice)]):
                acted_on = batch.without(Status.ELSEWHERE)
                for item_id in acted_on.ids:
                    pending.pop(item_id, None)
                if len(acted_on):
                    yield acted_on

    def _run_twice(self, block: Sequence[bytes]) -> Iterator[OutcomeBatch]:
        """Act on some IDs, on those that may be in transit after a second look."""
        looked_twice, in_transit = set(self.expected.looked_twice), list[bytes]()
        first = replace(self, dry_run=True) if self.at_once else self
        for batch in first.run_block(block, looked_twice=looked_twice):
            in_transit += batch.ids_with(Status.IN_TRANSIT)
            if not self.at_once:
                yield batch.without(Status.IN_TRANSIT)
        if in_transit:
            assert self.grace_s is not None
            # If one now has a lease or no data, the script reports that.
            second_look = look_twice(self.queue, in_transit, self.grace_s)
            looked_twice.update(facts.item_id for facts in second_look)
        changed = {item_id: None for item_id in in_transit if item_id not in looked_twice}
        yield OutcomeBatch.all_of(list(changed), Status.CHANGED)
        pending = [i for i in (block if self.at_once else in_transit) if i not in changed]
        for batch in self.run_block(pending, looked_twice=looked_twice):
            yield batch.without(Status.IN_TRANSIT)
            # Only since that look.
            yield OutcomeBatch.all_of(batch.ids_with(Status.IN_TRANSIT), Status.CHANGED)

    def act(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        """Act on IDs where they were seen, once they are saved; one that is not there any more is
        `ELSEWHERE`."""
        if not self.reads_first:
            yield from self.send(calls)
            return
        limit = Budget(items=GROUP_CALLS, bytes=4 * BUDGET.bytes)
        reads = read_snapshots(self.queue, calls, Skipped())
        for group in limit.split(reads, lambda read: sum(len(item.data) for item in read[1])):
            saved: list[Located] = []
            items: list[ItemSnapshot] = []
            for call, read in group:
                tokens = {item.item_id: self._token_to_save(item) for item in read}
                kept = [item for item in read if tokens[item.item_id] not in (None, _OTHER_DATA)]
                items += map(self.as_saved, self._in_their_order(call, kept))
                compared = {item_id: token for item_id, token in tokens.items() if token}
                saved.append(call._replace(saved=compared, read=kept))
            yield from recorded(self.queue, self.journal, items, self.send(saved), *_REMOVING)

    def send(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        """Act on IDs where they were seen, in calls within the budget of the script."""
        return self.queue.act_each(chain.from_iterable(map(self._requests, calls)))

    def _requests(self, call: Located) -> Iterator[tuple[Sequence[bytes], Command]]:
        conditions = self.expected
        if call.saved is not None:
            conditions = conditions._replace(tokens=call.saved)
        tokens = conditions.tokens or {}

        def bytes_of(item_id: bytes) -> int:
            return self.bytes_each + hashed_bytes(tokens.get(item_id, b""))

        budget, has_bytes = self.queue.budget(self.script), self.bytes_each or tokens
        for part in call.within(budget, bytes_of if has_bytes else None):
            args = self.args(part.ids) if callable(self.args) else self.args
            by_name = {**part.args(), **conditions.args(), **args}
            if part.looked_twice is not None:
                flags = ("01"[item_id not in part.looked_twice] for item_id in part.ids)
                by_name["is_first_look"] = "".join(flags)
            words = conditions.id_args(part.ids)
            yield part.ids, self.queue.script(self.script, *words, dry_run=self.dry_run, **by_name)

    def _token_to_save(self, item: ItemSnapshot) -> bytes | None:
        """The token of an item that is to be saved; None if it is to be left alone."""
        tokens = self.expected.tokens
        chosen_by = b"" if tokens is None else tokens.get(item.item_id, _OTHER_DATA)
        token = with_data(chosen_by, item.data)
        if token is None:
            return _OTHER_DATA
        return None if self.keeps_leased and item.lease else token

    def _in_their_order(self, call: Located, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items, those of main in their order; once one is nearer to the end, so are all that
        follow it. Removed items shift the middle of main during a walk.
        """
        if call.search != "windows":
            return sorted(items, key=lambda i: -1 if i.position is None else i.position)
        if self._is_past_middle:
            items = [i._replace(nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        self._is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items
