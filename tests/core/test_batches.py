"""Cutting streams: nothing lost, caps kept, and never read ahead."""

from collections.abc import Iterator

from hypothesis import given, strategies as st

from rwq_cli.core.batches import (
    BATCH_ITEMS,
    FLUSH,
    SCAN_BUDGET_ENTRIES,
    Flush,
    ids_per_call,
    in_batches,
)


@given(st.lists(st.integers(0, 50)), st.integers(1, 7), st.integers(1, 60))
def test_batches_keep_all_and_their_caps(sizes: list[int], items_max: int, bytes_max: int) -> None:
    batches = list(
        in_batches(sizes, items_max=items_max, bytes_max=bytes_max, size=lambda size: size)
    )
    assert [size for batch in batches for size in batch] == sizes
    for batch in batches:
        assert 1 <= len(batch) <= items_max
        # Only its last entry may carry a batch to the cap or over it.
        assert sum(batch[:-1]) < bytes_max
    for batch in batches[:-1]:
        assert len(batch) == items_max or sum(batch) >= bytes_max


def test_without_a_size_only_entries_count() -> None:
    assert [len(batch) for batch in in_batches(range(2 * BATCH_ITEMS + 1), bytes_max=1)] == [
        BATCH_ITEMS,
        BATCH_ITEMS,
        1,
    ]


def test_nothing_gives_no_batch() -> None:
    assert list(in_batches([])) == []


def test_the_stream_is_not_read_ahead() -> None:
    read: list[int] = []

    def stream() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            yield number

    batches = in_batches(stream(), items_max=3)
    assert read == []
    assert next(batches) == [0, 1, 2]
    assert read == [0, 1, 2]
    assert next(batches) == [3, 4, 5]
    assert read == [0, 1, 2, 3, 4, 5]


def test_a_pause_ends_a_batch() -> None:
    stream = [FLUSH, 1, 2, FLUSH, FLUSH, 3, 4, 5, FLUSH, 6, Flush()]
    batches = in_batches(stream, items_max=3, bytes_max=7, size=lambda number: number)
    assert list(batches) == [[1, 2], [3, 4], [5], [6]]


@given(st.integers(0, 100_000_000))
def test_ids_in_one_call_stay_within_the_budget(length: int) -> None:
    ids = ids_per_call(length)
    assert 1 <= ids <= BATCH_ITEMS
    assert ids == 1 or ids * length <= SCAN_BUDGET_ENTRIES


def test_ids_per_call_at_its_corners() -> None:
    assert [ids_per_call(length) for length in (0, 999, 1999, 49_999, 10_000_000)] == [
        500,
        500,
        250,
        10,
        1,
    ]
