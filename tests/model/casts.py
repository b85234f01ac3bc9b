"""Which programs meet, and what they find when they begin."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

from tests.model.keys import Frozen
from tests.model.programs import UPSTREAM, Cast
from tests.model.scripts import Queue

SESSION = "session"
# Each with the session of its place in the cast where `SESSION` stands.
KINDS: tuple[Cast, ...] = (
    ("produce", "new", "a"),
    ("produce", "old", "a"),
    ("work", "new", SESSION),
    ("work", "old", SESSION),
    ("light_clean_later",),
    ("light_clean_node",),
    ("light_clean_first",),
    ("deep_clean_later",),
    ("add", "a", False),
    ("add", "a", True),
    ("lease_and_complete", SESSION),
    ("lease_id", "a", SESSION),
    ("complete", "a"),
    ("remove", "a"),
    ("release", "a", SESSION, False, False),
    ("release", "a", SESSION, True, True),
    ("schedule", "a", "delayed", SESSION, False),
    ("schedule", "a", "delayed", SESSION, True),
    ("schedule", "a", "buried", SESSION, True),
    ("kick", "a"),
    ("light_clean",),
    ("deep_clean",),
    ("deep_clean_of_many",),
)
# Those that end jobs. They meet each other program alone.
OTHER_KINDS: tuple[Cast, ...] = (
    ("run_jobs", SESSION, "done"),
    ("run_jobs", SESSION, "failed"),
    ("run_jobs", SESSION, "stopped"),
)


def casts() -> Iterator[tuple[Cast, ...]]:
    """Every three programs, of which at least one is ours."""
    for kinds in combinations_with_replacement(KINDS, 3):
        if any(name not in UPSTREAM for name, *_ in kinds):
            yield _with_sessions(kinds)


def pairs_of_casts() -> Iterator[tuple[Cast, ...]]:
    """Few of those with ours, among which every two programs meet."""
    met: set[tuple[Cast, ...]] = set()
    for kinds in combinations_with_replacement(KINDS, 3):
        pairs = {tuple(sorted(pair)) for pair in combinations_with_replacement(kinds, 2)}
        pairs = {pair for pair in pairs if any(name not in UPSTREAM for name, *_ in pair)}
        if len(pairs - met) >= min(3, len(pairs)) and pairs:
            met |= pairs
            yield _with_sessions(kinds)


def duels(*, every: bool) -> Iterator[tuple[Cast, ...]]:
    """Two programs: every two, or our longest with each."""
    longest = KINDS[-1]
    for kinds in combinations_with_replacement(KINDS, 2):
        if every or longest in kinds:
            yield _with_sessions(kinds)


def other_duels() -> Iterator[tuple[Cast, ...]]:
    """Every two programs of which one is of `OTHER_KINDS`."""
    for kinds in combinations_with_replacement((*KINDS, *OTHER_KINDS), 2):
        if kinds[1] in OTHER_KINDS:
            yield _with_sessions(kinds)


# Two cleans of ours and an idle worker: what one returns, and the worker pops, the other leaves.
TRIOS: tuple[tuple[Cast, ...], ...] = (
    (("light_clean",), ("light_clean",), ("work", "new", "s2")),
    (("light_clean",), ("light_clean",), ("work", "old", "s2")),
    (("light_clean",), ("deep_clean",), ("work", "old", "s2")),
)


def _with_sessions(kinds: tuple[Cast, ...]) -> tuple[Cast, ...]:
    return tuple(
        tuple(
            (f"s{at}" if kind[0] in UPSTREAM else f"rwq:{at}") if word == SESSION else word
            for word in kind
        )
        for at, kind in enumerate(kinds)
    )


def made(**parts: object) -> Frozen:
    """Two items: `b` waits, unless the parts replace that."""
    queue = Queue()
    for item_id in ("a", "b"):
        queue.create(item_id)
    queue.main = ["b"]
    for name, part in parts.items():
        setattr(queue, name, part)
    return queue.frozen()


def _under(holder: str) -> dict[str, object]:
    """Both leases, set by us."""
    return {name: {"a": holder} for name in ("new", "old", "guarded")}


BEGINNINGS: dict[str, Frozen] = {
    "a waits, and is next": made(main=["b", "a"]),
    "a is abandoned": made(processing=["a"]),
    "a is leased by 0.1": made(processing=["a"], old={"a": "them"}),
    "a is leased by a later worker": made(processing=["a"], new={"a": "them"}),
    "a is leased by rwq": made(processing=["a"], **_under("rwq:9")),
    "a was leased by rwq, and a later client has ended that": made(
        processing=["a"], old={"a": "rwq:9"}
    ),
    "a was leased by rwq, and a 0.1 worker has it": made(
        processing=["a"], new={"a": "rwq:9"}, old={"a": "them"}
    ),
    "a is delayed": made(delayed={"a": "later"}, **_under("delayed")),
    "a is due": made(delayed={"a": "due"}, **_under("delayed")),
    "a is buried": made(buried={"a"}, **_under("buried")),
    "a is buried, and has lost one guard": made(buried={"a"}, old={"a": "buried"}),
    "a is an orphan": made(),
    "a is in the hand of a dead cleaner of 0.1": made(cleaning=["a"]),
    "a waits, and a dead cleaner of 0.1 has noted it": made(main=["b", "a"], cleaning=["a"]),
    "a is a ghost in main": made(main=["b", "a"], data={"b": 1}),
    "a is a ghost in processing, and b is leased": made(
        main=[], processing=["b", "a"], data={"b": 1}, old={"b": "them"}
    ),
    "a waits and is leased": made(main=["b", "a"], processing=["a"], new={"a": "them"}),
    "a waits, and its worker has died": made(main=["b", "a"], processing=["a"]),
    "a is abandoned, and has been tried twice": made(processing=["a"], returns={"a": 2}),
}
# What the trios find: the worker takes what a clean returns.
ABANDONED: tuple[Frozen, ...] = (
    made(main=[], processing=["a"], data={"a": 1}),
    made(main=[], processing=["a"], data={"a": 1}, pushed={"a": 1}, new={"a": "settling"}),
)
