"""Names for queues that spread evenly over the nodes of a cluster."""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from redis.crc import key_slot

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.server.cluster import ClusterConnection
from rwq_cli.core.server.connection import Connection


class SuggestedName(NamedTuple):
    """A name for a queue.

    Attributes:
        queue: The name.
        slot: The slot of its keys.
        node: The primary that has this slot now.
    """

    queue: bytes
    slot: int
    node: str


def suggested_names(connection: Connection, name: bytes, wanted: int) -> Iterator[SuggestedName]:
    """Names with hash tags whose slots are spread evenly over the primaries.

    Each primary gets the same number, give or take one, spread evenly over its slots, so that the
    names stay spread when slots move to new nodes. The numbers in the names have gaps.

    Args:
        connection: A cluster.
        name: What the names begin with.
        wanted: How many.

    Raises:
        InvalidArgument: The server is not a cluster, the name contains a brace, or a primary has
            too few slots for its share of the names.
        ServerError: The cluster could not be reached.

    Yields:
        The names, as they were found.
    """
    if not isinstance(connection, ClusterConnection):
        raise InvalidArgument(
            "names are suggested for a cluster only", "give a redis+cluster:// URL"
        )
    if b"{" in name or b"}" in name:
        raise InvalidArgument("the name contains a brace", "leave braces out; rwq adds them")
    # Each stretch of slots takes one name.
    stretch_of: dict[int, tuple[str, int]] = {}
    slots_of = connection.slots()
    for number, (node, slots) in enumerate(slots_of.items()):
        share = wanted // len(slots_of) + (number < wanted % len(slots_of))
        if share > len(slots):
            raise InvalidArgument(
                f"{node} has {len(slots):,} slots, which is fewer than its share of the names",
                "request fewer names",
            )
        for at, slot in enumerate(slots if share else ()):
            stretch_of[slot] = node, at * share // len(slots)
    taken: set[tuple[str, int]] = set()
    for number in count(1):
        if len(taken) == wanted:
            return
        queue = b"{%b:%d}" % (name, number)
        slot = key_slot(queue)
        stretch = stretch_of.get(slot)
        if stretch is not None and stretch not in taken:
            taken.add(stretch)
            yield SuggestedName(queue, slot, stretch[0])
