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
# More nested repetitions fill the memory before a signal is handled.
_REPETITIONS_MAX = 1_000_000

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|\{(?:\d*,)?(\d+)\}|.", re.DOTALL)


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
        if (
            _repetitions(text if isinstance(text, str) else text.decode("latin-1"))
            > _REPETITIONS_MAX
        ):
            raise InvalidArgument(
                f"the regular expression of {option} nests repetitions of more than "
                f"{_REPETITIONS_MAX:,} times",
                "give smaller numbers in { }",
            )
        _Clock.start()

    def search(self, text: AnyStr) -> "re.Match[AnyStr] | None":
        """The first match.

        Raises:
            InvalidArgument: It takes too long.
        """
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


def _repetitions(text: str) -> int:
    """How often the innermost part of an expression may be repeated, as its numbers say."""
    levels, last = [1], 1
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            levels.append(1)
        elif token[0] == ")" and len(levels) > 1:
            last = levels.pop()
        elif token[1]:
            last *= int(token[1][:9])
        elif token[0] not in "*+?":
            last = 1
        levels[-1] = max(levels[-1], last)
    return max(levels)
