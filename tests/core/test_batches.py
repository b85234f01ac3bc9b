"""Cutting streams, and outcomes in batches: nothing lost, caps kept, and never read ahead."""

import pytest
from hypothesis import given, strategies as st

from rwq_cli.core import Outcome, State, Status
from rwq_cli.core.batches import BUDGET, FLUSH, Budget, Flush, in_batches
from rwq_cli.core.items.add import NewItem, batched_items
from rwq_cli.core.lua import TOKEN_BYTES, items_max
from rwq_cli.core.model import OutcomeBatch, Outcomes
from rwq_cli.core.repair.findings import Code, Severity
from rwq_cli.core.state.expected import hashed_bytes
from rwq_cli.core.state.located import Located


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
def test_batches_keep_all_entries_and_are_full(entries: list[int], items_max: int) -> None:
    batches = list(in_batches(entries, items_max=items_max))
    assert [entry for batch in batches for entry in batch] == entries
    assert all(len(batch) == items_max for batch in batches[:-1])
    assert all(1 <= len(batch) <= items_max for batch in batches[-1:])
    assert list(in_batches(iter(entries), items_max=items_max)) == batches


@given(
    st.lists(st.sampled_from((0, 1, BUDGET.bytes // 3, BUDGET.bytes)), max_size=12),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_batches_have_a_mib_before_their_last_item(sizes: list[int], flushes: list[int]) -> None:
    items: list[NewItem | Flush] = [
        NewItem(b"%d" % number, Sized(size)) for number, size in enumerate(sizes)
    ]
    for at in flushes:
        items.insert(at, FLUSH)
    batches = [batch for batch in batched_items(items) if not isinstance(batch, Flush)]
    assert [len(data) for batch in batches for data in batch.data] == sizes
    assert {len(batch.ids) for batch in batches} <= {*range(1, items_max("add") + 1)}
    sizes_before = [sum(map(len, [*batch.ids[:-1], *batch.data[:-1]])) for batch in batches]
    assert max(sizes_before, default=0) < BUDGET.bytes


@given(st.lists(st.sampled_from((0, 1, BUDGET.bytes // 3, 5 * BUDGET.bytes)), max_size=12))
def test_calls_hash_a_mib_unless_one_item_has_more(sizes: list[int]) -> None:
    tokens = {b"%d" % number: b"%d:hash;r1" % size for number, size in enumerate(sizes)}
    budget = BUDGET._replace(items=5)
    calls = list(Located(list(tokens)).within(budget, lambda i: hashed_bytes(tokens[i])))
    assert [item_id for call in calls for item_id in call.ids] == list(tokens)
    assert {len(call.ids) for call in calls} <= {*range(6)}
    hashed = [[min(sizes[int(i)], TOKEN_BYTES) for i in call.ids] for call in calls]
    assert max((sum(several) for several in hashed if len(several) > 1), default=0) <= BUDGET.bytes


def test_a_call_goes_to_few_entries_far_apart() -> None:
    def ids_in_calls(gap: int) -> list[int]:
        column = [(400_000 + gap * number,) for number in range(600)]
        ids = [b"%d" % number for number in range(len(column))]
        call = Located(ids, "windows", (column, ()), lengths=(1_000_000, 0))
        return [len(part.ids) for part in call.within(Budget(items=200))]

    assert max(ids_in_calls(gap=1)) == 200
    assert 50 < min(ids_in_calls(gap=200)) <= max(ids_in_calls(gap=200)) < 200
    assert sum(ids_in_calls(gap=200)) == 600


def test_a_flush_ends_a_batch() -> None:
    stream = [FLUSH, 1, 2, FLUSH, FLUSH, 3, 4, 5, 6, FLUSH, 7, Flush()]
    assert list(in_batches(stream, items_max=3)) == [[1, 2], [3, 4, 5], [6], [7]]


def test_every_status_has_a_code_of_its_own() -> None:
    codes = [status.code for status in Status]
    assert {len(code) for code in codes} == {1}
    assert len(set(codes)) == len(codes)


def test_outcomes_are_read_one_by_one_or_in_batches() -> None:
    def batches():
        yield OutcomeBatch([b"1", b"2"], "ac")
        yield OutcomeBatch([], "")
        yield OutcomeBatch([b"3"], "m")

    assert [outcome.item_id for outcome in Outcomes(batches())] == [b"1", b"2", b"3"]
    assert [len(batch) for batch in Outcomes(batches()).batches] == [2, 0, 1]
    outcomes = Outcomes(batches())
    assert next(outcomes) == Outcome(b"1", Status.ADDED)
    assert [outcome.item_id for outcome in outcomes] == [b"2", b"3"]


def test_a_broken_state_is_more_than_a_note() -> None:
    # An item that is due is a finding only if it is late.
    findings = {code.value for code in Code if code.severity is not Severity.NOTE} - {"due"}
    assert {state for state in State if state.is_broken} == findings & set(State)


@pytest.mark.parametrize("state", State)
def test_every_state_of_an_item_is_in_one_place(state: State) -> None:
    """An item is leased, delayed or buried, or neither; nothing else is any of them."""
    assert state.is_leased + state.is_scheduled <= state.is_item <= state.has_data


def test_calls_compare_fewer_items_than_they_take() -> None:
    ids = [b"%d" % number for number in range(750)]
    calls = Located(ids).within(Budget(), lambda _: hashed_bytes(b"1:hash"))
    assert [len(call.ids) for call in calls] == [375, 375]
