"""Regular expressions that a user gives, each matched in bounded time.

Python's `re` tries again and again where an expression like `(a+)+$` nearly matches, but handles
signals meanwhile. So a timer of the process's CPU time ends a match that takes too long: it costs
nothing to import, and any expression that worked goes on working. RE2 would have no such matches,
and no look-ahead; the package `regex`, which has a timeout, takes 15 ms to import.
"""

import atexit
import re
import signal
import threading
import warnings
from typing import AnyStr, Generic

from rwq_cli.core.errors import InvalidArgument

# The CPU time of a match beyond what scanning its data takes, and of many short ones together.
_SECONDS = 2.0
_BYTES_PER_S = 500_000


class _TooSlow(Exception):
    """A match takes too long."""


class _Clock:
    """Counts the seconds that matches take; those that scan their data pay for themselves."""

    left_s = _SECONDS
    is_matching = False

    @classmethod
    def start(cls) -> None:
        """Begin to count; only the main thread handles signals."""
        is_free = signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
        if is_free and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGVTALRM, cls._tick)
            signal.setitimer(signal.ITIMER_VIRTUAL, 1, 1)
            # The interpreter lets go of its handlers when it ends.
            atexit.register(signal.setitimer, signal.ITIMER_VIRTUAL, 0)

    @classmethod
    def _tick(cls, *_: object) -> None:
        if cls.is_matching:
            cls.left_s -= 1
            if cls.left_s < 0:
                raise _TooSlow


class Regex(Generic[AnyStr]):
    """A regular expression, without Python's warnings about the syntax of its future versions."""

    def __init__(self, text: AnyStr, option: str) -> None:
        self._option = option
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                self._pattern: re.Pattern[AnyStr] = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            reason = "nested too deeply" if is_deep else error
            raise InvalidArgument(
                f"{option} is not a regular expression: {reason}",
                "escape characters that are meant literally",
            ) from error
        _Clock.start()

    def search(self, text: AnyStr) -> "re.Match[AnyStr] | None":
        scanning_s = len(text) / _BYTES_PER_S
        _Clock.left_s = min(_Clock.left_s + scanning_s, _SECONDS + scanning_s)
        _Clock.is_matching = True
        try:
            return self._pattern.search(text)
        except _TooSlow:
            _Clock.left_s = _SECONDS
            raise InvalidArgument(
                f"the regular expression of {self._option} takes too long on data of "
                f"{len(text):,} characters",
                "write it without nested repetitions such as (a+)+",
            ) from None
        finally:
            _Clock.is_matching = False
