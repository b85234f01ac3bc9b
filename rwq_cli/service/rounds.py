"""Work that is repeated until the process is stopped, even if the server is lost meanwhile."""

from collections.abc import Callable, Iterator
from random import random

from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import ServerError
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.backoff import Backoff, jittered
from rwq_cli.service.supervision import Supervision

# After a round that took longer than the interval, the pause is this share of the interval.
_LEAST_REST = 0.1


class Timer:
    """Says when something periodic is due.

    The first time comes after a random part of the interval, and later ones within 10 % of it, so
    that processes that started together do not act together.

    Args:
        every_s: The interval, seconds.
        clock: The clock.
    """

    def __init__(self, every_s: float, clock: Clock) -> None:
        self._every_s = every_s
        self._clock = clock
        self._due_s = clock.monotonic() + every_s * random()

    def is_due(self) -> bool:
        """Whether it is due; if so, the interval begins again."""
        now_s = self._clock.monotonic()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + jittered(self._every_s)
        return True


class Rounds:
    """Rounds of work; the first begins at once.

    Args:
        every_s: The time between the beginnings of two rounds, seconds.
        clock: The clock.
        note: Writes a line about the server.
        supervision: What supervisors see; None if there are none.
        is_exact: Whether the times are exact; they vary as those of a `Timer` otherwise.
    """

    def __init__(
        self,
        every_s: float,
        clock: Clock,
        *,
        note: Callable[[str], None],
        supervision: Supervision | None = None,
        is_exact: bool = False,
    ) -> None:
        self._every_s = every_s
        self._clock = clock
        self._note = note
        self._supervision = supervision
        self._is_exact = is_exact
        self._lost_s: float | None = None
        self._backoff = Backoff()
        self.has_failed = False
        """Whether the server was lost in this round, which then has to end."""

    def __iter__(self) -> Iterator[int]:
        """The numbers of the rounds, each when it is due."""
        number = 0
        while True:
            number += 1
            self.has_failed = False
            began_s = self._clock.monotonic()
            if self._supervision is not None:
                self._supervision.beat()
            yield number
            now_s = self._clock.monotonic()
            if self.has_failed:
                pause_s = self._backoff.next_s()
            else:
                self._found(now_s)
                every_s = self._interval_s(number)
                pause_s = max(began_s + every_s - now_s, _LEAST_REST * every_s)
            self._clock.sleep(pause_s)

    def _interval_s(self, number: int) -> float:
        if self._is_exact:
            return self._every_s
        return self._every_s * random() if number == 1 else jittered(self._every_s)

    def failed(self, error: ServerError) -> None:
        """Note that a round failed; the pause before the next one grows with each failure.

        Raises:
            ServerError: Trying again would not help.
        """
        if not error.is_transient:
            raise error
        self.has_failed = True
        message = escaped_text(error.message)
        if self._supervision is not None:
            self._supervision.lost(message)
        if self._lost_s is None:
            self._lost_s = self._clock.monotonic()
            self._note(f"{message}; trying again until the server responds")

    def _found(self, now_s: float) -> None:
        self._backoff.reset()
        if self._lost_s is not None:
            self._note(f"the server is responding again after {now_s - self._lost_s:.0f} s")
            self._lost_s = None
