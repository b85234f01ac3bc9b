"""Rounds: when they come, and what follows the loss of the server."""

import pytest

from rwq_cli.core.errors import AuthenticationFailed, ConnectionLost
from rwq_cli.service.supervision import Rounds
from tests.conftest import FakeClock


def pauses(rounds: Rounds, clock: FakeClock, count: int, took_s: float = 0) -> list[float]:
    """The pauses after so many rounds, each of which took so long."""
    for number in rounds:
        if number > count:
            break
        clock.now_s += took_s
    return clock.slept_s


def test_the_first_pause_is_random_and_others_vary() -> None:
    clocks = [FakeClock() for _ in range(50)]
    runs = [pauses(Rounds(30, clock, note=print), clock, 4) for clock in clocks]
    first = [head for head, *_ in runs]
    assert (min(first) < 10, max(first) > 20) == (True, True)
    assert [pause for _, *others in runs for pause in others if not 27 <= pause <= 33] == []
    assert [len(set(others)) for _, *others in runs] == [3] * 50


def test_the_interval_includes_the_round(clock: FakeClock) -> None:
    _, *others = pauses(Rounds(30, clock, note=print), clock, 4, took_s=10)
    assert all(17 <= pause <= 23 for pause in others)


def test_after_a_long_round_there_is_a_rest(clock: FakeClock) -> None:
    _, *others = pauses(Rounds(30, clock, note=print), clock, 4, took_s=100)
    assert all(2.7 <= pause <= 3.3 for pause in others)


def test_exact_rounds_do_not_vary(clock: FakeClock) -> None:
    assert pauses(Rounds(2, clock, note=print, is_exact=True), clock, 3) == [2, 2, 2]


class TestLostServer:
    def run(self, clock: FakeClock, failures: set[int], count: int) -> list[str]:
        """What is noted in so many rounds, of which some fail."""
        notes: list[str] = []
        rounds = Rounds(30, clock, note=notes.append, is_exact=True)
        for number in rounds:
            if number > count:
                break
            if number in failures:
                rounds.failed(ConnectionLost("lost the connection to db1"))
                assert rounds.has_failed
        return notes

    def test_it_is_noted_once_and_so_is_its_return(self, clock: FakeClock) -> None:
        notes = self.run(clock, {2, 3, 4}, 6)
        assert len(notes) == 2
        assert notes[0] == "lost the connection to db1; trying again until the server responds"
        assert notes[1].startswith("the server is responding again after ")

    def test_it_is_tried_again_soon_and_then_later(self, clock: FakeClock) -> None:
        self.run(clock, {2, 3, 4}, 6)
        before, *waits, after, _ = clock.slept_s
        assert (before, after) == pytest.approx((30, 30))
        assert waits == pytest.approx([0.5, 1, 2], rel=0.2)

    def test_what_time_does_not_cure_is_the_end(self, clock: FakeClock) -> None:
        with pytest.raises(AuthenticationFailed):
            Rounds(30, clock, note=print).failed(AuthenticationFailed("no"))
