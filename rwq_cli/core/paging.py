"""Reading a list of any length in pages while others push and pop."""

from collections.abc import Iterator

from rwq_cli.core.connection import Connection

PAGE_SIZE = 1000
_ANCHORS = 64
_OVERLAP_MIN = 8


def walk_list(
    connection: Connection,
    key: bytes,
    *,
    newest_first: bool,
    start: int = 0,
    page_size: int = PAGE_SIZE,
) -> Iterator[list[bytes]]:
    """Read a list in pages.

    Why it neither skips nor repeats an entry that stays: every page is read with a few entries of
    the one before it. While nothing moved, those are where they were. When entries were pushed or
    removed on our side of them, they stand elsewhere, and reading goes on right behind where they
    stand now. They are looked for in the page, then further back, then by LPOS in the whole list.
    Only when all of the last entries have left the list can nothing be aligned: going from the
    right, they were leased, and so was all before them, so the walk goes on at the right end;
    going from the left, all older ones left before them, so it ends.

    Args:
        connection: The server.
        key: The list.
        newest_first: From the left, where IDs are pushed, or from the right, where they leave.
        start: How many entries to pass over first.
        page_size: Entries in one read.

    Yields:
        Pages of entries in the order of the walk; never an empty one.
    """
    side = _Side(connection, key, from_left=newest_first)
    position, overlap = start, _OVERLAP_MIN
    anchors: list[bytes] = []
    while True:
        back = min(overlap, len(anchors), position)
        window = side.read(position - back, back + page_size)
        fresh = 0
        if anchors:
            if back and window[:back] == anchors[-back:]:
                fresh = back
            else:
                found = _after_anchor(window, anchors, back)
                if found is None:
                    if overlap < 8 * page_size and position > back:
                        overlap *= 8
                        back_far = min(overlap, position)
                        window = side.read(position - back_far, back_far + page_size)
                        found = _after_anchor(window, anchors, back_far)
                        back = back_far
                    if found is None:
                        position_now = side.find_last(anchors)
                        if position_now is None:
                            if newest_first:
                                return
                            position, anchors = 0, []
                        else:
                            position = position_now + 1
                            anchors = anchors[-1:]
                        continue
                position += found - back
                fresh = found
                back = found
        page = window[fresh:]
        if not page:
            return
        yield page
        position += len(page)
        anchors = (anchors + page)[-max(_ANCHORS, overlap) :]


def _after_anchor(window: list[bytes], anchors: list[bytes], expected: int) -> int | None:
    """The index behind the latest anchor that is still in the window, or None.

    An ID may be in a list twice, so of several places the one nearest to the expected one counts.
    """
    for age, anchor in enumerate(reversed(anchors[-_ANCHORS:])):
        if anchor in window:
            places = [index for index, entry in enumerate(window) if entry == anchor]
            return min(places, key=lambda place: abs(place - (expected - 1 - age))) + 1
    return None


class _Side:
    """A list seen from one of its ends: offset 0 is the first entry from there."""

    def __init__(self, connection: Connection, key: bytes, *, from_left: bool) -> None:
        self._connection = connection
        self._key = key
        self._from_left = from_left

    def read(self, offset: int, count: int) -> list[bytes]:
        if self._from_left:
            entries: list[bytes] = self._connection.call(
                "LRANGE", self._key, offset, offset + count - 1
            )
            return entries
        entries = self._connection.call("LRANGE", self._key, -(offset + count), -(offset + 1))
        entries.reverse()
        return entries

    def find_last(self, anchors: list[bytes]) -> int | None:
        """The offset of the latest anchor that is still in the list, or None."""
        rank = 1 if self._from_left else -1
        for anchor in reversed(anchors[-4:]):
            index, length = self._connection.call_all(
                [("LPOS", self._key, anchor, "RANK", rank), ("LLEN", self._key)], atomic=True
            )
            if index is not None:
                return int(index) if self._from_left else int(length) - 1 - int(index)
        return None
