"""Outcomes in batches: a letter each, read one by one or all at once."""

from hypothesis import given, strategies as st

from rwq_cli.core import Outcome, Status
from rwq_cli.core.model import OutcomeBatch, Outcomes

LETTERS = {
    "a": Status.ADDED,
    "d": Status.DUPLICATE,
    "c": Status.COMPLETED,
    "t": Status.TOUCHED,
    "r": Status.RELEASED,
    "w": Status.ALREADY_WAITING,
    "m": Status.MISSING,
    "o": Status.NOT_OWNER,
    "n": Status.NOT_LEASED,
    "i": Status.IMPORTED,
    "h": Status.ALREADY_THERE,
    "s": Status.SKIPPED,
    "p": Status.REPLACED,
    "f": Status.CONFLICT,
    "x": Status.REMOVED,
    "v": Status.MOVED,
    "g": Status.CHANGED,
    "y": Status.WRONG_TYPE,
    "l": Status.DELAYED,
    "b": Status.BURIED,
    "e": Status.ALREADY_BURIED,
    "k": Status.KICKED,
    "u": Status.NOT_BURIED,
}


def test_every_status_has_a_letter() -> None:
    letters = "".join(LETTERS)
    ids = [letter.encode() for letter in letters]
    assert list(OutcomeBatch(ids, letters, [b"them"])) == [
        Outcome(letter.encode(), status, b"them" if letter == "o" else None)
        for letter, status in LETTERS.items()
    ]
    assert set(LETTERS.values()) == set(Status)


def test_each_holder_goes_to_its_own_outcome() -> None:
    batch = OutcomeBatch([b"1", b"2", b"3", b"4"], "ocoo", [b"x", b"", b"y"])
    assert list(batch) == [
        Outcome(b"1", Status.NOT_OWNER, b"x"),
        Outcome(b"2", Status.COMPLETED),
        Outcome(b"3", Status.NOT_OWNER),
        Outcome(b"4", Status.NOT_OWNER, b"y"),
    ]
    # It can be read again.
    assert len(list(batch)) == len(batch) == 4


@given(st.lists(st.sampled_from(sorted(LETTERS)), max_size=30), st.sets(st.integers(0, 30)))
def test_counts_and_choices_agree_with_the_outcomes(letters: list[str], chosen: set[int]) -> None:
    ids = [b"%d" % number for number in range(len(letters))]
    holders = [b"holder of " + ids[at] for at, letter in enumerate(letters) if letter == "o"]
    batch = OutcomeBatch(ids, "".join(letters), holders)
    outcomes = list(batch)
    statuses = [outcome.status for outcome in outcomes]
    assert batch.counts() == {status: statuses.count(status) for status in set(statuses)}
    wanted = {b"%d" % number for number in chosen}
    assert list(batch.only(wanted)) == [o for o in outcomes if o.item_id in wanted]
    assert list(batch) == outcomes


def test_outcomes_one_by_one_or_in_their_batches() -> None:
    def batches():
        yield OutcomeBatch([b"1", b"2"], "ac")
        yield OutcomeBatch([], "")
        yield OutcomeBatch([b"3"], "m")

    assert [outcome.item_id for outcome in Outcomes(batches())] == [b"1", b"2", b"3"]
    assert [len(batch) for batch in Outcomes(batches()).batches] == [2, 0, 1]
    outcomes = Outcomes(batches())
    assert next(outcomes) == Outcome(b"1", Status.ADDED)
    assert [outcome.item_id for outcome in outcomes] == [b"2", b"3"]
