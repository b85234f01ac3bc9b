"""What a Tab offers for names: of queues, items, holders and contexts.

Typer asks for it with `autocompletion=`. Only names that mean the same in every shell without
quotes are offered, because Typer's scripts do not quote.
"""

import os
import re
from collections.abc import Callable, Iterable

import typer

from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import State

_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_NAMES_MAX = 50
_LISTED = frozenset(
    {
        *(State.WAITING, State.LEASED, State.HELD, State.ABANDONED),
        *(State.DELAYED, State.DUE, State.BURIED),
    }
)

Offer = Callable[[typer.Context, list[str], str], list[str]]


def _offer(find: Callable[[Settings], Iterable[bytes]]) -> Offer:
    def offered(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001
        names = map(os.fsdecode, find(ctx.find_root().obj))
        return [name for name in names if _PLAIN.fullmatch(name)]

    return offered


def offer_ids(states: frozenset[State] = _LISTED) -> Offer:
    """Offer the first IDs of the queue that are in one of these states and in a list."""

    def find(settings: Settings) -> Iterable[bytes]:
        from rwq_cli.cli.connect import open_queue
        from rwq_cli.core.inspect.selection import Selection, source_of

        wanted = states & _LISTED
        items = open_queue(settings).items(
            source_of(wanted), Selection(wanted), limit=_NAMES_MAX, bare=True
        )
        return [item.item_id for item in items]

    return _offer(find)


def _queues(settings: Settings) -> Iterable[bytes]:
    from rwq_cli.cli.connect import open_connection
    from rwq_cli.core.inspect.queues import queue_names

    return queue_names(open_connection(settings))


def _holders(settings: Settings) -> Iterable[bytes]:
    from rwq_cli.cli.connect import open_queue

    leases = open_queue(settings).leases(limit=_NAMES_MAX)
    return dict.fromkeys(item.lease.holder for item in leases if item.lease is not None)


offer_queues = _offer(_queues)
offer_holders = _offer(_holders)
offer_contexts = _offer(lambda settings: map(os.fsencode, settings.contexts.by_name))
