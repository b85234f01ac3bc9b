"""What may happen to a queue while one of our operations is under way, and how to draw it."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

# Numbers stand for IDs and programs: which ones they are is decided when it happens.
ids = st.integers(0, 7)
programs = st.integers(0, 5)


@dataclass(frozen=True, slots=True)
class Meddling:
    """What somebody else does: a method of the machine's, and what it is told."""

    method: str
    told: tuple[Any, ...]


def _meddling(method: str, *told: st.SearchStrategy[Any]) -> st.SearchStrategy[Meddling]:
    return st.builds(Meddling, st.just(method), st.tuples(*told))


PEER_OPERATIONS = (
    *("add", "lease", "take", "complete", "release", "delay", "bury", "kick", "pick"),
    *("light_clean", "deep_clean", "doctor"),
)
meddling = st.one_of(
    _meddling("step", programs, st.integers(1, 4)),
    _meddling("crash", programs),
    _meddling("work", st.booleans(), st.integers(1, 6)),
    _meddling("clean_a_snapshot", st.booleans(), st.booleans(), st.integers(1, 4)),
    _meddling("finish", ids, st.booleans(), st.integers(1, 3)),
    _meddling("expire", ids, st.booleans()),
    _meddling("pass_time", ids, st.booleans()),
    _meddling("let_a_peer", st.sampled_from(PEER_OPERATIONS), ids),
)


# The number of a command of ours, or a script's name.
Moment = int | str


@dataclass(frozen=True, slots=True)
class Adversity:
    """What happens during one of our operations."""

    # Before our n-th command, or before the first run of a script.
    between: dict[Moment, Meddling]
    # During the grace period.
    in_sleep: list[Meddling]
    # Before which command we are killed.
    dies_before: Moment | None

    @property
    def only_in_sleep(self) -> bool:
        return not self.between and self.dies_before is None

    @property
    def none(self) -> bool:
        return self.only_in_sleep and not self.in_sleep


_SCRIPTS = (
    *("repair", "prune", "delete_stray_leases", "complete", "release"),
    *("schedule", "push_scheduled", "states", "probe", "look_up"),
)
# A deep clean of a broken queue sends about thirty commands.
moments = st.one_of(st.sampled_from(_SCRIPTS), st.integers(0, 30))
adversities = st.one_of(
    st.builds(Adversity, st.just({}), st.lists(meddling, max_size=4), st.none()),
    st.builds(
        Adversity,
        st.dictionaries(moments, meddling, max_size=4),
        st.lists(meddling, max_size=2),
        st.none(),
    ),
    st.builds(Adversity, st.just({}), st.just([]), moments),
)
