"""Regular expressions that a user gives, each matched in bounded time.

Python's `re` tries again and again where an expression like `(a+)+$` nearly matches, but handles
signals meanwhile. So a timer of the process's CPU time ends a match that takes too long: it costs
nothing to import, and any expression that worked goes on working. RE2 would have no such matches,
and no look-ahead; the package `regex`, which has a timeout, takes 15 ms to import.
"""

import re
import signal
import sys
import threading
import warnings
from typing import AnyStr, Generic

from rwq_cli.core.errors import InvalidArgument

# The CPU time of one match: long for an expression that only scans the data.
_SECONDS = 3
_BYTES_PER_S = 5_000_000


class _TooSlow(Exception):
    """A match takes too long."""


class _Clock:
    """Counts the seconds that the current match has taken."""

    left_s = sys.maxsize

    @classmethod
    def start(cls) -> None:
        """Begin to count; only the main thread handles signals."""
        is_free = signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
        if is_free and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGVTALRM, cls._tick)
            signal.setitimer(signal.ITIMER_VIRTUAL, 1, 1)

    @classmethod
    def _tick(cls, *_: object) -> None:
        cls.left_s -= 1
        if cls.left_s < 0:
            raise _TooSlow


class Regex(Generic[AnyStr]):
    """A regular expression, without Python's warnings about the syntax of its future versions.

    Raises:
        InvalidArgument: The text is not a valid one.
    """

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
        """The first match.

        Raises:
            InvalidArgument: It takes too long.
        """
        _Clock.left_s = _SECONDS + len(text) // _BYTES_PER_S
        try:
            return self._pattern.search(text)
        except _TooSlow:
            raise InvalidArgument(
                f"the regular expression of {self._option} takes more than {_SECONDS} s for "
                f"{len(text):,} characters",
                "write it without nested repetitions such as (a+)+",
            ) from None
        finally:
            _Clock.left_s = sys.maxsize
