"""What happens to an item when its job has ended."""

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.schedule import REASON_BYTES_MAX
from rwq_cli.core.work.job import Done, Failure, Fate, GiveUp, OnFail, PutBack, RetryPolicy, Step

MIDDLE = 0.5


def test_the_delay_doubles_up_to_its_maximum() -> None:
    policy = RetryPolicy(retries=9, backoff_s=10, backoff_max_s=100, jitter=0)
    delays = [policy.step(Failure(b""), attempt, MIDDLE).delay_s for attempt in range(1, 10)]
    assert delays == [10, 20, 40, 80, 100, 100, 100, 100, 100]


def test_jitter_never_exceeds_the_maximum() -> None:
    policy = RetryPolicy(backoff_s=10, backoff_max_s=21, jitter=0.2)
    assert [policy.delay_s(1, random) for random in (0.0, 0.5, 1.0)] == pytest.approx([8, 10, 12])
    # Also at the maximum, no two delays are the same.
    delays = [policy.delay_s(2, random) for random in (0.0, 0.5, 1.0)]
    assert delays == pytest.approx([16, 18.5, 21])


def test_a_huge_attempt_does_not_overflow() -> None:
    assert RetryPolicy(retries=10**15, jitter=0).delay_s(10**14, MIDDLE) == 600
    assert RetryPolicy(backoff_s=0).delay_s(10**14, MIDDLE) == 0


@pytest.mark.parametrize("on_fail", OnFail)
def test_a_failure_is_retried_until_the_last_try(on_fail: OnFail) -> None:
    policy = RetryPolicy(retries=2, on_fail=on_fail)
    fates = [policy.step(Failure(b"why"), attempt, MIDDLE).fate for attempt in (1, 2, 3)]
    last = {"bury": Fate.BURIED, "reject": Fate.REJECTED}.get(on_fail, Fate.RELEASED)
    assert fates == [Fate.RETRY, Fate.RETRY, last]
    assert [policy.is_last(attempt) for attempt in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize("on_fail", OnFail)
@pytest.mark.parametrize("attempt", [1, 2])
def test_each_failed_try_that_leaves_the_item_counts(on_fail: OnFail, attempt: int) -> None:
    step = RetryPolicy(retries=1, on_fail=on_fail).step(Failure(b""), attempt, MIDDLE)
    # The last attempt of a buried item is not counted: who releases it wants one more.
    assert step.counted == (step.fate in (Fate.RETRY, Fate.RELEASED))


@pytest.mark.parametrize(
    ("on_fail", "fate"), [(OnFail.BURY, Fate.BURIED), (OnFail.REJECT, Fate.REJECTED)]
)
def test_an_item_that_killed_workers_is_given_up(on_fail: OnFail, fate: Fate) -> None:
    policy = RetryPolicy(retries=3, on_fail=on_fail)
    assert [policy.is_exhausted(attempt) for attempt in (1, 4, 5, 6)] == [False, False, True, True]
    step = policy.step(None, 5, MIDDLE)
    reason = b"no attempts left: 4 attempts failed, or their worker died"
    assert step == Step(fate, reason, gave_up=True)
    reason = b"no attempts left: 1 attempt failed, or its worker died"
    assert policy.step(None, 2, MIDDLE).data == reason


@pytest.mark.parametrize("on_fail", [OnFail.RELEASE, OnFail.STOP])
def test_an_item_to_be_released_is_always_tried_again(on_fail: OnFail) -> None:
    policy = RetryPolicy(retries=3, on_fail=on_fail)
    assert not policy.is_exhausted(100)
    step = policy.step(Failure(b"why"), 100, MIDDLE)
    assert (step.fate, step.gave_up, step.stops) == (Fate.RELEASED, True, on_fail is OnFail.STOP)


@pytest.mark.parametrize("attempt", [1, 4, 100])
def test_other_ends_do_not_depend_on_the_attempt(attempt: int) -> None:
    policy = RetryPolicy(on_fail=OnFail.STOP)
    assert policy.step(Done(), attempt, MIDDLE) == Step(Fate.COMPLETED)
    assert policy.step(Done(b"r"), attempt, MIDDLE) == Step(Fate.COMPLETED, b"r")
    assert policy.step(PutBack(front=True), attempt, MIDDLE) == Step(Fate.RELEASED, front=True)
    step = Step(Fate.BURIED, b"why", gave_up=True)
    assert policy.step(GiveUp(b"why"), attempt, MIDDLE) == step


@pytest.mark.parametrize("end", [Failure, GiveUp])
def test_a_long_reason_is_cut(end: type[Failure | GiveUp]) -> None:
    reason = b"x" * (REASON_BYTES_MAX + 1)
    data = RetryPolicy(retries=0).step(end(reason), 1, MIDDLE).data
    assert len(data or b"") == REASON_BYTES_MAX


@pytest.mark.parametrize(
    "options", [{"retries": -1}, {"backoff_s": -1}, {"backoff_max_s": -1}, {"jitter": 1.1}]
)
def test_an_impossible_policy_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        RetryPolicy(**options)  # type: ignore[arg-type]
