"""Restoring the items and results of an export: `lua/ops/restore.lua`, `restore_results.lua`; and
replacing the data of items that is still what was read: `set_data.lua`."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha1, sha256
from itertools import chain, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from rwq_cli.core.batches import (
    BUDGET,
    FLUSH,
    Acknowledged,
    Flush,
    acknowledged,
    in_batches,
)
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import Places
from rwq_cli.core.inspect.results import Result, read_result_keys
from rwq_cli.core.items.bulk import Journal, Seen, in_rounds, read_items, recorded
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import Located
from rwq_cli.core.state.probe import ItemSnapshot, Place, Skipped, existing
from rwq_cli.core.state.rules import is_guard

RESTORE_ITEMS = 250
# Items that may have to be replaced: they are looked for together.
_REPLACE_ITEMS = 80 * RESTORE_ITEMS
# What may be replaced, besides a SHA-1: nothing; or nothing, and the item must exist. A SHA-1 after
# the last of these is of an item that keeps its place.
_NEVER, _OTHER, _IN_PLACE = "-", "other", "="
_NOWHERE = Located(())
# An item as it was read, and its new data.
Edit = tuple[ItemSnapshot, bytes]
# What is written to the journal at once.
_GROUP_ITEMS = 8 * BUDGET.items


class OnConflict(StrEnum):
    """How to handle an ID that exists with other data."""

    FAIL = "fail"
    SKIP = "skip"
    REPLACE = "replace"


_OTHER_DATA = {
    OnConflict.FAIL: Status.CONFLICT,
    OnConflict.SKIP: Status.SKIPPED,
    OnConflict.REPLACE: Status.REPLACED,
}


class Line(NamedTuple):
    """A line of an export: its number in the file, from 1 for the header, and what it has."""

    number: int
    entry: ItemSnapshot | Result
    # For what an import replaced, what replaced it, as in `Journal`: the entry is restored only in
    # place of that.
    replaced_by: str | None = None


def restore(
    queue: Queue,
    lines: Iterable[Line | Flush],
    *,
    on_conflict: OnConflict = OnConflict.FAIL,
    front: bool = False,
    in_place: bool = False,
    file_id: bytes | None = None,
    results: Counter[Status] | None = None,
    journal: Journal | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Restore items and results, in their order: those of main next first, those of processing
    longest leased first. With `front`, each item of main is put before all waiting items, so the
    lines must come in reverse order.

    An ID that exists with the same data is already there, in any state: a worker may have leased it
    since. Of one with other data that is replaced, only the data change if nothing else differs, or
    a session holds the item, or with `in_place`; else it gets the place, lease and state of the
    line. A result that exists stays, unless `REPLACE`. What is replaced is written to the journal
    first; results are counted in `results`.

    The script that restores a line also marks it, in a bitmap on the server that the SHA-256 of the
    file names. So a run after an interruption resumes where the first one stopped, and never
    restores an item that was completed in between. At the end, the caller calls `forget_marks`.

    An item is `CHANGED` or `MISSING` if it is no longer what was to be replaced.
    """
    queue.keys.check_new()
    kept = None if dry_run else journal
    if dry_run:
        queue.connection.set_no_touch()
    marks = b"" if file_id is None else queue.keys.undo(file_id)
    replaces = on_conflict is OnConflict.REPLACE
    tracked = Acknowledged()
    # In a dry run, by the kind and ID of what would be restored, a hash of an item's data.
    foreseen: dict[tuple[type, bytes], bytes] = {}

    def batches() -> Iterator[OutcomeBatch]:
        limits = (_REPLACE_ITEMS, 4 * BUDGET.bytes) if replaces else (RESTORE_ITEMS, BUDGET.bytes)
        with tracked:
            for kind, group in groupby(_batches(lines, *limits), itemgetter(0)):
                found = map(itemgetter(1), group)
                if kind is Result:
                    deque(map(restore_results, filter(None, found)), maxlen=0)
                    continue
                queue.progress.begin("restoring")
                replaced = chain.from_iterable(map(replace, filter(None, found)))
                for outcomes in replaced if replaces else run((each, _NOWHERE) for each in found):
                    tracked.add(len(outcomes))
                    queue.progress.advance(len(outcomes))
                    yield outcomes

    def run(
        parts: Iterable[tuple[Sequence[Line], Located]],
        replaceable: Mapping[bytes, str] = MappingProxyType({}),
    ) -> Iterator[OutcomeBatch]:
        """Restore parts of the lines; an empty one is a pause of the source."""
        known = {"marks": marks, "on_conflict": on_conflict.value, "front": front}

        def words(part: Sequence[Line], located: Located) -> Sequence[object]:
            rest: list[object] = []
            for number, entry, _ in part:
                item, left_ms = _item(entry), -2
                if item.lease is not None:
                    # A lease that was about to end must keep an expiry.
                    left_ms = -1 if item.lease.ttl_ms is None else max(1, item.lease.ttl_ms)
                place = item.place if item.place in (Place.MAIN, Place.PROCESSING) else "none"
                rest += number, item.item_id, item.data, str(place)
                rest += item.lease.holder if item.lease else b"", left_ms
                times = item.due_ms, item.buried_ms, item.returns
                rest += ("" if each is None else repr(each) for each in times)
                rest.append(replaceable.get(item.item_id, ""))
            return script_words("restore", rest, **located.args(), **known)

        calls = ((part, words(part, found)) if part else None for part, found in parts)
        for part, reply in queue.run_each("restore", calls, dry_run=dry_run):
            if reply is REFUSED:
                tracked.skip(len(part))
            else:
                yield outcomes_of(part, reply)

    def replace(part: Sequence[Line]) -> Iterator[OutcomeBatch]:
        """Restore lines, and replace only items that were read, and are in any journal."""
        by_id = {line.entry.item_id: line for line in part}
        replaceable: dict[bytes, str] = {}
        replaced: list[ItemSnapshot] = []
        replaced_by: list[str] = []
        moved: set[bytes] = set()
        if not dry_run or part[0].replaced_by is not None:
            replaceable = {i: _NEVER if by_id[i].replaced_by is None else _OTHER for i in by_id}
            for item in chain.from_iterable(read(by_id)):
                line = by_id[item.item_id]
                entry = _item(line.entry)
                if item.data == entry.data:
                    continue
                replaced.append(item)
                replaced_by.append(sha256(entry.data).hexdigest())
                if line.replaced_by in (None, sha256(item.data).hexdigest()):
                    digest = sha1(item.data, usedforsecurity=False).hexdigest()
                    is_held = item.lease is not None and not is_guard(item.lease)
                    is_there = (item.place, item.due_ms) == (entry.place, entry.due_ms)
                    stays = in_place or is_held or is_there
                    replaceable[item.item_id] = _IN_PLACE + digest if stays else digest
                    moved.update(() if stays else (item.item_id,))

        def act(calls: Iterable[Located], _: bool) -> Iterator[OutcomeBatch]:
            parts = (part for call in calls for part in call.within(queue.budget("restore")))
            # Only what leaves its place is looked for.
            return run((([by_id[i] for i in p.ids], p.only(moved)) for p in parts), replaceable)

        seen = None if moved else Seen(Places({}, {}), (0, 0), 0)
        done = in_rounds(queue, act, by_id, in_order=True, seen=seen)
        return recorded(queue, kept, replaced, done, Status.REPLACED, replaced_by=replaced_by)

    def read(by_id: Mapping[bytes, Line]) -> Iterator[list[ItemSnapshot]]:
        """The items with these IDs; as they are in the lines, but for their data, if they stay."""
        if not in_place:
            # Reading items reads the lists: usually, none exists.
            yield from read_items(queue, existing(queue, by_id), Skipped())
            return
        for batch in in_batches(by_id, items_max=RESTORE_ITEMS):
            found = zip(batch, queue.call("MGET", *map(queue.keys.item, batch)), strict=True)
            yield [_item(by_id[i].entry)._replace(data=d) for i, d in found if d is not None]

    def restore_results(part: Sequence[Line]) -> None:
        queue.progress.begin("restoring results")
        found = [(n, entry, by) for n, entry, by in part if isinstance(entry, Result)]
        replaceable = {each.item_id: by or "" for _, each, by in found}
        if replaces and kept is not None:
            # Only what was written to the journal.
            new = {each.item_id: str(each.completed_ms) for _, each, _ in found}
            replaceable = dict.fromkeys(new, "-")
            for keys in read_result_keys(queue, list(new), data=True):
                if old := [key.result for key in keys if key.result is not None]:
                    kept.write(old, [new[each.item_id] for each in old])
                replaceable.update((each.item_id, str(each.completed_ms)) for each in old)
        args: list[object] = []
        for number, each, _ in found:
            args += number, each.item_id, -1 if each.ttl_ms is None else max(1, each.ttl_ms)
            args += each.status.value, each.completed_ms
            for text in (each.holder, each.result):
                args += int(text is not None), text or b""
            args.append(replaceable[each.item_id])
        named: dict[str, Any] = {"marks": marks, "replaces": replaces, "dry_run": dry_run}
        outcomes = outcomes_of(part, queue.run("restore_results", *args, **named))
        if results is not None:
            results.update(outcomes.counts())
        queue.progress.advance(len(outcomes))

    def outcomes_of(part: Sequence[Line], reply: Sequence[Any]) -> OutcomeBatch:
        """The outcomes; in a dry run, as if the entries before each had been restored."""
        outcomes = OutcomeBatch.from_reply([line.entry.item_id for line in part], reply)
        if not dry_run:
            return outcomes
        both = zip(part, outcomes, strict=True)
        return OutcomeBatch.of(o._replace(status=foresee(p.entry, o.status)) for p, o in both)

    def foresee(entry: ItemSnapshot | Result, status: Status) -> Status:
        if status is Status.IMPORTED_BEFORE:
            return status
        key = type(entry), entry.item_id
        digest = sha256(entry.data).digest() if isinstance(entry, ItemSnapshot) else b""
        before = foreseen.get(key)
        if before is not None and (digest or status is Status.IMPORTED):
            same = before == digest and not (replaces and not digest)
            status = Status.ALREADY_THERE if same else _OTHER_DATA[on_conflict]
        if status in (Status.IMPORTED, Status.REPLACED):
            foreseen[key] = digest
        return status

    return Outcomes(batches())


def read_marks(queue: Queue, file_id: bytes) -> bytes:
    """The bitmap of the lines that were restored, beginning with the bit of line 0; b"" if the
    server has none."""
    return queue.call("GET", queue.keys.undo(file_id)) or b""


def forget_marks(queue: Queue, file_id: bytes) -> None:
    """Delete the marks of a file that was restored completely."""
    queue.call("DEL", queue.keys.undo(file_id))


def _batches(
    lines: Iterable[Line | Flush], items_max: int, size_max: int
) -> Iterator[tuple[type, list[Line]]]:
    """Batches of lines of one kind, after it, with each ID at most once. An empty one is a `FLUSH`,
    which does not end a kind."""
    batch: list[Line] = []
    ids: set[bytes] = set()
    size = 0
    kind: type = ItemSnapshot
    for line in chain(lines, (FLUSH,)):
        if batch and (
            isinstance(line, Flush)
            or len(batch) >= items_max
            or size >= size_max
            or line.entry.item_id in ids
            or type(line.entry) is not kind
        ):
            yield kind, batch
            batch, ids, size = [], set(), 0
        if isinstance(line, Flush):
            yield kind, []
            continue
        entry = line.entry
        kind = type(entry)
        batch.append(line)
        ids.add(entry.item_id)
        size += (entry.result_bytes or 0) if isinstance(entry, Result) else len(entry.data)


def _item(entry: ItemSnapshot | Result) -> ItemSnapshot:
    assert isinstance(entry, ItemSnapshot)
    return entry


def _edited_bytes(edit: Edit) -> int:
    item, new_data = edit
    return len(item.data) + len(new_data)


def edit_items(
    queue: Queue,
    edits: Iterable[Edit | Flush],
    journal: Journal | None = None,
    *,
    dry_run: bool = False,
) -> Outcomes:
    """Replace the data of items, each if it is still what was read; see `WorkQueue.edit_many`.
    Place, lease, state, times and expiry stay; idle times are reset.

    What is replaced is written to the journal first, some thousand items at a time or up to a
    `FLUSH`, each with the SHA-256 of its new data, which `Line` takes.
    """
    kept = None if dry_run else journal

    def calls(edits: Iterable[Edit]) -> Iterator[tuple[list[bytes], Sequence[object]]]:
        budget = queue.budget("set_data")
        limits = {"items_max": budget.items, "size_max": budget.bytes}
        for batch in in_batches(edits, **limits, size_of=_edited_bytes):
            words = (word for item, new in batch for word in (item.item_id, item.data, new))
            yield [item.item_id for item, _ in batch], script_words("set_data", words)

    def edited() -> Iterator[OutcomeBatch]:
        if dry_run:
            queue.connection.set_no_touch()
        queue.check_one_slot()
        queue.progress.begin("editing")
        limits = {"items_max": _GROUP_ITEMS, "size_max": 4 * BUDGET.bytes}
        for group in in_batches(edits, **limits, size_of=_edited_bytes):
            if same := [item.item_id for item, new in group if new == item.data]:
                yield OutcomeBatch.all_of(same, Status.UNCHANGED)
            changes = [(item, new) for item, new in group if new != item.data]
            items = [item for item, _ in changes]
            by = [sha256(new).hexdigest() for _, new in changes]
            act = queue.act_each("set_data", calls(changes), dry_run=dry_run)
            yield from recorded(queue, kept, items, act, Status.SET, replaced_by=by)

    return Outcomes(acknowledged(queue.progress, edited()))
