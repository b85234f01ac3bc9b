"""Pauses between attempts grow, and differ from process to process."""

from rwq_cli.service.backoff import Backoff, jittered


def test_each_pause_is_about_twice_as_long_as_the_one_before_it() -> None:
    backoff = Backoff()
    pauses = [backoff.next_s() for _ in range(7)]
    for pause, usual in zip(pauses, (0.5, 1, 2, 4, 8, 10, 10), strict=True):
        assert 0.8 * usual <= pause <= 1.2 * usual


def test_after_success_the_first_pause_comes_again() -> None:
    backoff = Backoff()
    for _ in range(4):
        backoff.next_s()
    backoff.reset()
    assert backoff.next_s() <= 0.6


def test_a_jittered_time_is_near_and_hardly_ever_the_same() -> None:
    times = {jittered(30) for _ in range(100)}
    assert min(times) >= 27
    assert max(times) <= 33
    assert len(times) > 90
