"""Reading lists and sorted sets of any length in pages while others change them."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from rwq_cli.core.handle import Queue
from rwq_cli.core.server.commands import Command

# A page of so many IDs takes the client about two MiB. Over a long line, where each page costs a
# round trip, it has more, which still takes the server less than two milliseconds.
_PAGES_MAX = 10_000, 25_000
# The first page where more than the IDs is read of each, or where it may be the only one.
PAGE_SIZE = 1000
# The cursor loses its place only if this many entries leave the list between two reads.
_ANCHORS = 1024
# As many are read again with each page.
_OVERLAP = 256


def page_entries(queue: Queue) -> int:
    """How many entries a page of a walk has at most."""
    return _PAGES_MAX[queue.connection.shared.is_slow_line]


class _Cursor(Iterator[list[bytes]]):
    """Pages of IDs, each with twice as many as the one before, up to a limit."""

    def __init__(self, queue: Queue, page_size: int | None = None) -> None:
        self._queue, self.page_size = queue, page_size or page_entries(queue)
        # The place of the last page's first entry in a list.
        self.offset = 0
        self._is_at_end = False
        self._first: list[Any] | None = None

    @abstractmethod
    def first_command(self) -> Command: ...

    def start(self, reply: list[Any]) -> None:
        """Begin with the reply to `first_command`."""
        self._first = reply

    def _reply_to(self, command: Command) -> list[Any]:
        reply, self._first = self._first, None
        reply = self._queue.call(*command) if reply is None else reply
        self.page_size = min(2 * self.page_size, page_entries(self._queue))
        return reply


class ListCursor(_Cursor):
    """Pages of a list, in order from one of its ends.

    It neither skips nor repeats an entry that stays, because every page is read together with the
    last entries of the pages before it, the anchors. If they have moved, reading continues right
    after their new place. The place is lost only if all of the last thousand have left the list.
    Read from the right, everything before them was leased, too: reading continues at the right end.
    Read from the left, all older entries left before them: reading ends.

    The first page comes after `start` entries; places are counted from the end where reading began.
    """

    def __init__(
        self, queue: Queue, key: bytes, *, from_left: bool = False, start: int = 0, **pages: int
    ) -> None:
        super().__init__(queue, **pages)
        self._key, self._from_left = key, from_left
        self._position = start
        # The last entries that were read, the latest last.
        self._anchors: list[bytes] = []

    def __next__(self) -> list[bytes]:
        while not self._is_at_end:
            back = min(_OVERLAP, len(self._anchors), self._position)
            asked = back + self.page_size
            window = self._reply_to(self._command(self._position - back, asked))
            window = window if self._from_left else window[::-1]
            fresh: int | None = back
            if window[:back] != self._anchors[len(self._anchors) - back :]:
                fresh = _after_anchors(window, self._anchors, back)
            if fresh is None:
                self._find_place()
                continue
            self._is_at_end = len(window) < asked
            self.offset = self._position + fresh - back
            page = window[fresh:]
            self._position = self.offset + len(page)
            if page:
                self._queue.progress.advance(len(page))
                self._anchors = (self._anchors + page)[-_ANCHORS:]
                return page
        raise StopIteration

    def first_command(self) -> Command:
        return self._command(self._position, self.page_size)

    def _command(self, offset: int, count: int) -> Command:
        if self._from_left:
            return ("LRANGE", self._key, offset, offset + count - 1)
        return ("LRANGE", self._key, -(offset + count), -(offset + 1))

    def _find_place(self) -> None:
        """Find an anchor that is still in the list, not near where it was. Each LPOS scans the
        list, so it looks only for the last few and for ever older ones: any later anchors that are
        left come right after the one that is found."""
        rank = 1 if self._from_left else -1
        ages = (1, 2, 3, 4, *(2**power for power in range(3, 11)))
        for age in (age for age in ages if age <= len(self._anchors)):
            index, length = self._queue.call_all(
                [("LPOS", self._key, self._anchors[-age], "RANK", rank), ("LLEN", self._key)],
                atomic=True,
            )
            if index is not None:
                self._position = int(index) + 1 if self._from_left else int(length) - int(index)
                return
        self._position, self._anchors, self._is_at_end = 0, [], self._from_left


def _after_anchors(window: list[bytes], anchors: list[bytes], expected: int) -> int | None:
    """The index in the window after the run of anchors, or None. No command inserts between two
    entries of a list, so what is left of them is one run; others were pushed again."""
    wanted, run = set(anchors), 0
    # The length of each run, and the index after it.
    runs: list[tuple[int, int]] = []
    for index, entry in enumerate((*window, None)):
        if run and entry not in wanted:
            runs.append((run, index))
        run = run + 1 if entry in wanted else 0
    # The longest run; of equally long ones, the nearest to the expected index.
    best = max(
        runs, key=lambda candidate: (candidate[0], -abs(candidate[1] - expected)), default=None
    )
    return best and best[1]


class ScheduledCursor(_Cursor):
    """Pages of the IDs in the delayed or the buried sorted set, by score.

    It neither skips nor repeats an entry whose score does not change: each page begins at the score
    of the last entry, without the entries of that score that were read; or if these are more than a
    page, after the last of them that is still there.
    """

    def __init__(
        self, queue: Queue, name: str, *, latest_first: bool = False, **pages: int
    ) -> None:
        super().__init__(queue, **pages)
        self._key = queue.name + b":" + name.encode()
        self._latest_first = latest_first
        # The last score, as the server printed it, and the entries of it that were read.
        self._score: bytes | None = None
        self._read: set[bytes] = set()
        # Some entries of the last page, latest first.
        self._anchors: list[bytes] = []
        # Of the last page, unix ms.
        self.scores: list[float] = []

    def first_command(self) -> Command:
        return self._by_score(self.page_size)

    def _by_score(self, count: int) -> Command:
        first, last = (b"+inf", b"-inf") if self._latest_first else (b"-inf", b"+inf")
        limit = ("BYSCORE", "LIMIT", 0, count)
        return self._range(first if self._score is None else self._score, last, *limit)

    def _range(self, first: object, last: object, *options: object) -> Command:
        direction = ["REV"] * self._latest_first
        return ("ZRANGE", self._key, first, last, *direction, *options, "WITHSCORES")

    def __next__(self) -> list[bytes]:
        while not self._is_at_end:
            fresh = [entry for entry in self._next_entries() if entry[0] not in self._read]
            if fresh:
                if self._score != fresh[-1][1]:
                    self._score, self._read = fresh[-1][1], set()
                self._read.update(i for i, score in fresh if score == self._score)
                self._anchors = [fresh[-(2**power)][0] for power in range(len(fresh).bit_length())]
                self.scores = [float(score) for _, score in fresh]
                return [item_id for item_id, _ in fresh]
        raise StopIteration

    def _next_entries(self) -> list[tuple[bytes, bytes]]:
        """The next page, perhaps with entries that were read."""
        count = self.page_size + len(self._read)
        if len(self._read) > self.page_size:
            # They would be read again with every page.
            after_anchor = self._entries_after_anchor()
            if after_anchor is not None:
                return after_anchor
            # What was read has probably left the set.
            count = self.page_size
        entries = _pairs(self._reply_to(self._by_score(count)))
        if len(entries) == count and self._read.issuperset(item_id for item_id, _ in entries):
            count = self.page_size + len(self._read)
            entries = _pairs(self._reply_to(self._by_score(count)))
        self._is_at_end = len(entries) < count
        return entries

    def _entries_after_anchor(self) -> list[tuple[bytes, bytes]] | None:
        """The next page, by rank; None if no anchor is left, or it has just moved."""
        rank_of = "ZREVRANK" if self._latest_first else "ZRANK"
        # The user may not be allowed to ask.
        ranks = self._queue.call_all(
            [(rank_of, self._key, anchor) for anchor in self._anchors], return_errors=True
        )
        for anchor, rank in zip(self._anchors, ranks, strict=True):
            if isinstance(rank, int):
                asked = self.page_size
                entries = _pairs(self._reply_to(self._range(rank, rank + asked)))
                if [entry[0] for entry in entries[:1]] != [anchor]:
                    return None
                self._is_at_end = len(entries) <= asked
                return entries[1:]
        return None


def _pairs(reply: list[Any]) -> list[tuple[bytes, bytes]]:
    """The IDs and scores of a reply to ZRANGE with WITHSCORES."""
    if reply and not isinstance(reply[0], bytes):
        # A client of a caller's own may speak RESP3, which makes pairs of IDs and scores.
        reply = list(chain.from_iterable(reply))
    return list(zip(reply[::2], reply[1::2], strict=True))


def lengths_of(queue: Queue, *lists: bytes) -> Callable[[], int]:
    """Reads the total length of some lists, for a progress listener."""
    return lambda: sum(queue.call_all([("LLEN", key) for key in lists]))


def read_first_pages(
    queue: Queue, *cursors: ListCursor | ScheduledCursor, before: Sequence[Command] = ()
) -> list[Any]:
    """Read the first pages in one round trip, up to the first that is not all there is: what comes
    after that one is read in its turn, so that what moves on meanwhile is not missed. Returns the
    replies to the commands that come before."""
    commands = [*before, *(cursor.first_command() for cursor in cursors)]
    replies = queue.call_all(commands)
    for cursor, reply in zip(cursors, replies[len(before) :], strict=True):
        cursor.start(reply)
        if len(reply) >= cursor.page_size:
            break
    return replies[: len(before)]
