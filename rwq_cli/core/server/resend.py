"""What is sent again, to a cluster or through Sentinel, and why nothing is ever done twice.

On one server nothing is ever sent again. Behind Sentinel and in a cluster a command may meet a node
that cannot run it now: `CASES` says what happens then. A command that is in no case is not sent
again. Neither is one that may change something and whose reply was lost: the error says that it is
in doubt, and the caller adds how many items that concerns and which command shows them.
"""

from typing import Any, NamedTuple

from redis import exceptions as rx

from rwq_cli.core import errors


class Case(NamedTuple):
    """A failure after which a request is sent again.

    Attributes:
        failure: redis-py's exception for an error reply, or an error of the core.
        writes: Whether a request that may change something is sent again, too.
        finds_again: Whether the node is looked up again first.
        why: Why that is safe.
    """

    failure: type[Exception]
    writes: bool
    finds_again: bool
    why: str


_REFUSED = "A node checks this before it runs a command, script or EXEC: nothing ran."

CASES: tuple[Case, ...] = (
    # The reply names the new node, so nothing needs to be looked up.
    Case(rx.MovedError, True, False, _REFUSED),
    Case(errors.WrongNode, True, False, _REFUSED),
    # The slot is moving, and a key may be on either node. Each script call names a key that never
    # exists, so that it is refused on both until all keys have moved, and never runs half.
    Case(rx.AskError, True, False, _REFUSED),
    Case(rx.TryAgainError, True, False, _REFUSED),
    Case(rx.ClusterDownError, True, True, _REFUSED),
    # The primary was demoted. A script writes only after it has read everything, and its first
    # write is refused; a transaction is refused when its first write is queued.
    Case(rx.ReadOnlyError, True, True, "A replica refuses the first write: nothing ran."),
    Case(rx.MasterDownError, True, True, _REFUSED),
    Case(errors.Loading, True, True, "A server that loads its data runs nothing."),
    Case(errors.Unreachable, True, True, "Nothing was sent: no link was open."),
    Case(errors.Unavailable, True, True, "Nothing was sent: no primary was known."),
    Case(errors.ConnectionLost, False, True, "A read can be repeated safely."),
)


def case_of(failure: Any, *, writes: bool) -> Case | None:
    """The case of a reply or error; None if the request must not be sent again.

    Args:
        failure: A reply, or an error of the core.
        writes: Whether the request may change something.
    """
    if not isinstance(failure, Exception):
        return None
    for case in CASES:
        if isinstance(failure, case.failure) and (case.writes or not writes):
            return case
    return None
