"""Cutting streams: nothing lost, caps kept, and never read ahead."""

from hypothesis import given, strategies as st

from rwq_cli.core.batches import (
    BATCH_BYTES,
    FLUSH,
    Flush,
    ids_per_call,
    in_batches,
)
from rwq_cli.core.items.add import ADD_ITEMS, NewItem, batched_items


class Sized(bytes):
    """Data that claims a size, so that no test needs megabytes."""

    size: int

    def __new__(cls, size: int) -> "Sized":
        data = super().__new__(cls)
        data.size = size
        return data

    def __len__(self) -> int:
        return self.size


@given(st.lists(st.integers()), st.integers(1, 7))
def test_batches_keep_all_entries_and_are_full_but_for_the_last(
    entries: list[int], items_max: int
) -> None:
    for source in (entries, iter(entries)):
        batches = list(in_batches(source, items_max=items_max))
        assert [entry for batch in batches for entry in batch] == entries
        assert all(len(batch) == items_max for batch in batches[:-1])
        assert all(1 <= len(batch) <= items_max for batch in batches[-1:])


@given(
    st.lists(st.sampled_from((0, 1, BATCH_BYTES // 3, BATCH_BYTES)), max_size=12),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_batches_of_items_have_at_most_4_mib_before_their_last_item(
    sizes: list[int], flushes: list[int]
) -> None:
    items: list[NewItem | Flush] = [
        NewItem(b"%d" % number, Sized(size)) for number, size in enumerate(sizes)
    ]
    for at in flushes:
        items.insert(at, FLUSH)
    batches = [batch for batch in batched_items(items) if not isinstance(batch, Flush)]
    assert [len(data) for batch in batches for data in batch.data] == sizes
    for batch in batches:
        assert 1 <= len(batch.ids) <= ADD_ITEMS
        assert sum(map(len, [*batch.ids[:-1], *batch.data[:-1]])) < BATCH_BYTES


def test_a_flush_ends_a_batch() -> None:
    stream = [FLUSH, 1, 2, FLUSH, FLUSH, 3, 4, 5, 6, FLUSH, 7, Flush()]
    assert list(in_batches(stream, items_max=3)) == [[1, 2], [3, 4, 5], [6], [7]]


def test_ids_per_call_at_its_corners() -> None:
    assert [ids_per_call(length) for length in (0, 999, 1999, 49_999, 10_000_000)] == [
        1000,
        500,
        250,
        10,
        1,
    ]
