"""rwq as a process whose clock is wrong by WRONG_BY_S seconds; with `tell` it prints the time.

The process is a fork, in which everything is imported: what a module has taken from `time` and
`datetime` by `from` is replaced there.
"""

import datetime
import os
import runpy
import sys
import time
from typing import Any

_shift_s = float(os.environ["WRONG_BY_S"])
_time, _time_ns, _gmtime, _localtime = time.time, time.time_ns, time.gmtime, time.localtime


class _Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "_Wrong":
        return cls.fromtimestamp(wrong_time(), tz)

    @classmethod
    def utcnow(cls) -> "_Wrong":
        return cls.fromtimestamp(wrong_time(), datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> "_Wrong":
        return cls.now()


def wrong_time() -> float:
    return _time() + _shift_s


# By the identity of what is replaced.
_WRONG: dict[int, Any] = {
    id(_time): wrong_time,
    id(_time_ns): lambda: _time_ns() + int(_shift_s) * 10**9,
    id(_gmtime): lambda secs=None: _gmtime(wrong_time() if secs is None else secs),
    id(_localtime): lambda secs=None: _localtime(wrong_time() if secs is None else secs),
    id(datetime.datetime): _Wrong,
}


def put_the_clock_wrong() -> None:
    """In the standard library's modules, and in what rwq has imported from them."""
    own = [module for name, module in sys.modules.items() if name.startswith(("rwq_cli", "redis"))]
    for module in (time, datetime, *own):
        for name, value in [*vars(module).items()]:
            if id(value) in _WRONG:
                setattr(module, name, _WRONG[id(value)])


def main() -> None:
    put_the_clock_wrong()
    if sys.argv[1:] == ["tell"]:
        from rwq_cli.commands import lease
        from rwq_cli.input import times

        print(time.time(), datetime.datetime.now().timestamp())
        print(lease.time(), times.datetime.now().timestamp())
        return
    runpy.run_module("rwq_cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
