"""What may happen to a queue while one of our operations is under way, and how to draw it."""

from dataclasses import dataclass

from hypothesis import strategies as st

# Numbers stand for IDs and programs: which ones they are is decided when it happens.
ids = st.integers(0, 7)
programs = st.integers(0, 5)


@dataclass(frozen=True, slots=True)
class Step:
    """A foreign program sends its next commands."""

    program: int
    commands: int


@dataclass(frozen=True, slots=True)
class Work:
    """A foreign worker takes the next item and comes so far with it."""

    old: bool
    commands: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A foreign program ends where it is."""

    program: int


@dataclass(frozen=True, slots=True)
class Expire:
    """The lease of an item ends."""

    item: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes for a delayed item: it becomes due, or its guard ends, too."""

    item: int
    past_guard: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """A foreign program completes an item wherever it is, and comes so far with it."""

    item: int
    old: bool
    commands: int


@dataclass(frozen=True, slots=True)
class Peer:
    """Another rwq does something, from its first command to its last."""

    operation: str
    item: int


@dataclass(frozen=True, slots=True)
class Clean:
    """A foreign cleaner reads the lists, and comes so far in what it has read."""

    old: bool
    deep: bool
    commands: int


Meddling = Step | Work | Crash | Expire | Pass | Finish | Peer | Clean
_PEER_OPERATIONS = (
    "add",
    "lease",
    "take",
    "complete",
    "release",
    "delay",
    "bury",
    "kick",
    "pick",
    "light_clean",
    "deep_clean",
    "doctor",
)

meddling = st.one_of(
    st.builds(Step, programs, st.integers(1, 3)),
    st.builds(Work, st.booleans(), st.integers(1, 5)),
    st.builds(Expire, ids),
    st.builds(Pass, ids, st.booleans()),
    st.builds(Finish, ids, st.booleans(), st.integers(1, 3)),
    st.builds(Peer, st.sampled_from(_PEER_OPERATIONS), ids),
    st.builds(Clean, st.booleans(), st.booleans(), st.integers(1, 4)),
    st.builds(Crash, programs),
)


# The number of a command of ours, or a script's name.
Moment = int | str


@dataclass(frozen=True, slots=True)
class Adversity:
    """What happens during one of our operations.

    Attributes:
        between: What happens before our n-th command, or before the first run of a script.
        in_sleep: What happens during the grace period.
        dies_before: Before which command we are killed; None for not at all.
    """

    between: dict[Moment, Meddling]
    in_sleep: list[Meddling]
    dies_before: Moment | None

    @property
    def only_in_sleep(self) -> bool:
        return not self.between and self.dies_before is None

    @property
    def none(self) -> bool:
        return self.only_in_sleep and not self.in_sleep


NO_ADVERSITY = Adversity({}, [], None)
_SCRIPTS = (
    "repair",
    "claim",
    "unclaim",
    "prune",
    "restore_guards",
    "delete_stray_leases",
    "complete",
    "release",
    "schedule",
    "push_scheduled",
    "states",
    "probe",
    "look_up",
)
# A deep clean of a broken queue sends about thirty commands.
moments = st.one_of(st.sampled_from(_SCRIPTS), st.integers(0, 30))
adversities = st.one_of(
    st.just(NO_ADVERSITY),
    st.builds(Adversity, st.just({}), st.lists(meddling, max_size=4), st.none()),
    st.builds(
        Adversity,
        st.dictionaries(moments, meddling, max_size=4),
        st.lists(meddling, max_size=2),
        st.none(),
    ),
    st.builds(Adversity, st.just({}), st.just([]), moments),
)
