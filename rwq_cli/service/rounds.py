"""Work that is repeated until the process is stopped, even if the server is lost meanwhile."""

import random
from collections.abc import Callable, Iterator

from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import AuthenticationFailed, ServerError
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.supervision import Supervision

# The pauses while the server is lost grow from the first to the second.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _PAUSE_SPREAD = 0.5, 10.0, 0.2
# After a round that took longer than the interval, the pause is this share of the interval.
_LEAST_REST = 0.1


def jittered(seconds: float, spread: float = 0.1) -> float:
    """A random time near this one: processes that start together do not stay together."""
    return seconds * random.uniform(1 - spread, 1 + spread)


class Rounds:
    """Rounds of work that begin every so often, the first at once.

    `note` writes a line about the server. Unless they are exact, the first pause has a random
    length, and the others vary as `jittered`.
    `has_failed` says that the server was lost in this round, which then has to end.
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
        self._every_s, self._clock, self._is_exact = every_s, clock, is_exact
        self._note, self._supervision = note, supervision
        self._lost_s: float | None = None
        self._pause_s, self._was_found = _FIRST_PAUSE_S, False
        self.has_failed = False

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
                pause_s = jittered(self._pause_s, _PAUSE_SPREAD)
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            else:
                self._pause_s, self._was_found = _FIRST_PAUSE_S, True
                if self._lost_s is not None:
                    lost_s, self._lost_s = now_s - self._lost_s, None
                    self._note(f"the server is responding again after {lost_s:.0f} s")
                every_s = self._every_s
                if not self._is_exact:
                    every_s = every_s * random.random() if number == 1 else jittered(every_s)
                pause_s = max(began_s + every_s - now_s, _LEAST_REST * every_s)
            self._clock.sleep(pause_s)

    def failed(self, error: ServerError) -> None:
        """Note that a round failed, or raise the error if trying again would not help."""
        # A password that was right may have been changed, and be known a moment later.
        is_rotated = self._was_found and isinstance(error, AuthenticationFailed)
        if not (error.is_transient or is_rotated):
            raise error
        self.has_failed = True
        message = escaped_text(error.message)
        if self._supervision is not None:
            self._supervision.lost(message)
        if self._lost_s is None:
            self._lost_s = self._clock.monotonic()
            self._note(f"{message}; trying again until the server responds")
