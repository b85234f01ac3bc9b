"""Pauses that differ from process to process, and grow while nothing succeeds."""

import random

_FIRST_S = 0.5
_LONGEST_S = 10.0
_SPREAD = 0.2


def jittered(seconds: float, spread: float = 0.1) -> float:
    """A random time near this one: by default within 10 % of it.

    Processes that start together do not stay together.
    """
    return seconds * random.uniform(1 - spread, 1 + spread)


class Backoff:
    """The pauses between attempts: each is twice as long as the one before it, within 20 %."""

    def __init__(self) -> None:
        self._next_s = _FIRST_S

    def next_s(self) -> float:
        """The pause before the next attempt, seconds."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, _LONGEST_S)
        return jittered(pause_s, _SPREAD)

    def reset(self) -> None:
        """Begin with the first pause again, after an attempt that succeeded."""
        self._next_s = _FIRST_S
