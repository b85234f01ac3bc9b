"""The ages of items, as far as the server can tell them.

For a buried item the server stores since when it is; of any other it knows when its data were last
used, by a clock of 24 bits that counts seconds and begins again after 194 days. If the clock of the
server's machine is set back, what was used just before seems to have been used 194 days ago.
"""

from typing import Any, NamedTuple

from rwq_cli.core.clock import unix_ms
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.model import Item, State

# The longest idle time that is believed: a day less than where the server's clock begins again.
LONGEST_S = (1 << 24) - 86_400
# Idle times begin a little after the server does, and are whole seconds.
LOADING_S = 2


def longest_age(uptime_s: int | None) -> int:
    """The longest idle time that can be true: no key was idle for longer than the server is up."""
    return LONGEST_S if uptime_s is None else min(LONGEST_S, uptime_s + LOADING_S)


def believed(idle_s: object, uptime_s: int | None) -> int | None:
    """An idle time, seconds; None if the server gave none, or one that cannot be true."""
    return idle_s if isinstance(idle_s, int) and idle_s <= longest_age(uptime_s) else None


class ServerAges(NamedTuple):
    """What decides which ages a server can tell: its clock, unix ms, how long it is up, seconds,
    and its policy at the limit of memory; None for what this user may not read."""

    now_ms: int
    uptime_s: int | None
    policy: str | None

    @classmethod
    def of_server(cls, queue: Queue) -> "ServerAges":
        infos = ("INFO", "server"), ("INFO", "memory")
        now, *replies = queue.call_all([("TIME",), *infos], return_errors=True)
        info: dict[str, Any] = {}
        for reply in replies:
            info.update(reply if isinstance(reply, dict) else {})
        return cls(unix_ms(now), info.get("uptime_in_seconds"), info.get("maxmemory_policy"))

    @property
    def longest_s(self) -> int:
        return longest_age(self.uptime_s)

    def of_item(self, item: Item, idle_s: object) -> int | None:
        if item.state is State.BURIED and item.buried_ms is not None:
            return max(0, self.now_ms - item.buried_ms) // 1000
        return believed(idle_s, self.uptime_s)

    def check(self, older_than_s: float) -> None:
        """Raise `InvalidArgument` if no item, but for buried ones, can be known to be so old."""
        if "lfu" in (self.policy or ""):
            raise InvalidArgument(
                f"no age is known: by its maxmemory-policy, {self.policy}, the server keeps none",
                "choose by something else; buried items alone have an age",
            )
        if older_than_s > LONGEST_S:
            raise InvalidArgument(
                f"no age above {LONGEST_S // 86_400} days is known: the server's clock for them "
                "begins again",
                "give a shorter one; buried items alone may be older",
            )
