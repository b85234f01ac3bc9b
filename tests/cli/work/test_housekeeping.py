"""The thread of a worker that cleans beside its commands."""

from collections.abc import Iterator
from threading import Event
from typing import Any, cast

from rwq_cli.core.model import CleanAction, Repair, State
from rwq_cli.work.housekeeping import Housekeeper
from tests.driver import TIMEOUT_S


class SlowQueue:
    """A queue whose clean ends when it is told to."""

    name = b"jobs"

    def __init__(self) -> None:
        self.began, self.ends, self.ended = Event(), Event(), Event()

    def light_clean(self) -> Iterator[CleanAction]:
        self.began.set()
        assert self.ends.wait(TIMEOUT_S)
        yield CleanAction(b"1", Repair.RETURNED, State.ABANDONED)
        self.ended.set()


def test_a_clean_that_ends_after_the_worker_wakes_nobody() -> None:
    queue = SlowQueue()
    woken: list[str] = []
    housekeeper = Housekeeper(
        [cast(Any, queue)], clean_s=60.0, count_s=None, notify=lambda: woken.append("")
    )
    assert queue.began.wait(TIMEOUT_S)
    housekeeper.close()
    queue.ends.set()
    assert queue.ended.wait(TIMEOUT_S)
    housekeeper._thread.join(TIMEOUT_S)
    assert woken == []


def test_a_clean_that_did_something_wakes_the_worker() -> None:
    queue, woken = SlowQueue(), Event()
    queue.ends.set()
    housekeeper = Housekeeper([cast(Any, queue)], clean_s=60.0, count_s=None, notify=woken.set)
    assert woken.wait(TIMEOUT_S)
    assert list(housekeeper.take_cleans()) == [(b"jobs", {Repair.RETURNED: 1})]
    housekeeper.close()
