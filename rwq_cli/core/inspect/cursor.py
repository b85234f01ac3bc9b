"""Reading a list of any length in pages while others push and pop."""

from collections.abc import Callable, Iterator
from itertools import chain

from rwq_cli.core.handle import Queue

PAGE_SIZE = 1000
# So many entries would have to leave the list between two reads to lose our place.
_ANCHORS = 1024
_OVERLAP_MIN = 8


def walk_list(
    queue: Queue,
    key: bytes,
    *,
    newest_first: bool,
    start: int = 0,
    page_size: int = PAGE_SIZE,
    turns: bool = False,
) -> Iterator[list[bytes]]:
    """Read a list in pages.

    Why it neither skips nor repeats an entry that stays: every page is read with a few entries of
    the one before it. While nothing moved, those are where they were. When entries were pushed or
    removed on our side of them, they stand elsewhere, and reading goes on right behind where they
    stand now. They are looked for in the page, then further back, then by LPOS in the whole list.
    Only when all of the last thousand have left the list can nothing be aligned: going from the
    right, they were leased, and so was all before them, so the walk goes on at the right end;
    going from the left, all older ones left before them, so it ends.

    Args:
        connection: The server.
        key: The list.
        newest_first: From the left, where IDs are pushed, or from the right, where they leave.
        start: How many entries to pass over first.
        page_size: Entries in one read.
        turns: Others may be turning the list round; see `walk_processing`.

    Yields:
        Pages of entries in the order of the walk; never an empty one.
    """
    side = _Side(queue, key, from_left=newest_first)
    position, overlap, yielded = start, _OVERLAP_MIN, 0
    # The last entries of the walk, the latest last.
    anchors: list[bytes] = []
    while True:
        back = min(overlap, position) if anchors else 0
        window = side.read(position - back, back + page_size)
        known = min(back, len(anchors))
        fresh: int | None = back
        if anchors and (not known or window[back - known : back] != anchors[-known:]):
            fresh = _after_anchors(window, anchors, back)
            if fresh is None and back < min(_ANCHORS, position):
                # Further towards our end, as far as the anchors may scope.
                overlap = _ANCHORS
                continue
            place: int | None
            place = position - back + fresh if fresh is not None else side.after_last(anchors)
            turned = turns and place is not None and place > position
            if place is None or turned:
                # All anchors have left, or stand behind what was not read yet. Where the anchors
                # are all that was ever read, nothing that is left was read.
                if newest_first and not turned and yielded > len(anchors):
                    return
                position, anchors = 0, []
                continue
            if fresh is None:
                position = place
                continue
        assert fresh is not None
        page = window[fresh:]
        position += fresh - back
        if page:
            queue.progress.advance(len(page))
            yield page
            position += len(page)
            yielded += len(page)
            overlap = _OVERLAP_MIN
            anchors = (anchors + page)[-_ANCHORS:]
        elif len(window) < back + page_size:
            return


def lengths_of(queue: Queue, *lists: bytes) -> Callable[[], int]:
    """What a meter asks for the number of entries in some lists."""
    return lambda: sum(queue.call_all([("LLEN", key) for key in lists]))


def walk_processing(
    queue: Queue,
) -> Iterator[list[bytes]]:
    """Read the processing list in pages, also while another of our commands turns it round.

    Such a command takes pages off the right end and puts what it keeps back on the left. So the
    list is read from the right: an entry that was not read yet is always ahead, and if the pages
    that were read have all been turned away from under us, reading begins again at the right end.
    Then an entry can be met twice, but none is missed.
    """
    return walk_list(queue, queue.keys.processing, newest_first=False, turns=True)


def walk_scheduled(
    queue: Queue,
    name: str,
    *,
    latest_first: bool = False,
    start: int = 0,
    page_size: int = PAGE_SIZE,
) -> Iterator[list[tuple[bytes, float]]]:
    """Read the delayed or the buried zset in pages, in the order of time.

    Why it neither skips nor repeats an entry that stays where it is: each page begins behind the
    last entry of the one before it that is still there, wherever that stands by now. Only when all
    of the last few have left does it go by the score of the last one; then entries that were read
    are told apart by their names.

    Args:
        queue: The queue.
        name: `delayed` or `buried`.
        latest_first: From the latest to the earliest.
        start: How many entries to pass over first.
        page_size: Entries in one read.

    Yields:
        Pages of IDs with their scores, unix ms; never an empty one.
    """
    # What was read last, as the server told it.
    last: list[tuple[bytes, bytes]] = []
    direction = "1" if latest_first else "0"
    while True:
        anchors = chain.from_iterable(last[: -_OVERLAP_MIN - 1 : -1])
        words = (name, direction, page_size, start, *anchors)
        reply = queue.run("scheduled_page", *words)
        if not reply:
            return
        met = {item_id for item_id, _ in last}
        last = list(zip(reply[::2], reply[1::2], strict=True))
        fresh = [(item_id, float(score)) for item_id, score in last if item_id not in met]
        if fresh:
            yield fresh


def _after_anchors(window: list[bytes], anchors: list[bytes], expected: int) -> int | None:
    """The index in the window behind the anchors that still stand together, or None.

    Nothing is ever put between two entries of a list, so what is left of the anchors is one run.
    Anchors that stand elsewhere were taken away and pushed anew.
    """
    sought = set(anchors)
    best: tuple[int, int] | None = None
    end = None
    run = 0
    for index, entry in enumerate((*window, None)):
        if entry in sought:
            run += 1
        elif run:
            # The longest run, and of several the one nearest to where it should be.
            rank = (run, -abs(index - expected))
            if best is None or rank > best:
                best, end = rank, index
            run = 0
    return end


class _Side:
    """A list seen from one of its ends: offset 0 is the first entry from there."""

    def __init__(self, queue: Queue, key: bytes, *, from_left: bool) -> None:
        self._queue = queue
        self._key = key
        self._from_left = from_left

    def read(self, offset: int, count: int) -> list[bytes]:
        if self._from_left:
            entries: list[bytes] = self._queue.call("LRANGE", self._key, offset, offset + count - 1)
            return entries
        entries = self._queue.call("LRANGE", self._key, -(offset + count), -(offset + 1))
        entries.reverse()
        return entries

    def after_last(self, anchors: list[bytes]) -> int | None:
        """The offset behind an anchor that is still in the list, or None if it met none.

        Each question passes over the list, so only the last few and ever older ones are asked for;
        later ones that are left as well stand right behind the one that is found.
        """
        rank = 1 if self._from_left else -1
        for age in (1, 2, 3, 4, *(2**power for power in range(3, 11))):
            if age > len(anchors):
                break
            index, length = self._queue.call_all(
                [("LPOS", self._key, anchors[-age], "RANK", rank), ("LLEN", self._key)],
                atomic=True,
            )
            if index is not None:
                return int(index) + 1 if self._from_left else int(length) - int(index)
        return None
