"""A lease key of the wrong type belongs to others: it is never deleted or overwritten."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import NewItem, State, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.restore import restore as restore_items
from rwq_cli.core.items.results import ResultOptions
from rwq_cli.core.items.schedule import promote as promote_items
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.state.snapshot import ItemSnapshot, Place
from tests.conftest import HOLDER, QUEUE, Foreign
from tests.export_lines import lines_of

# The waiting items of a queue "jobs:lease" are in the lease key of this ID.
ID = b"queue"

Act = Callable[[WorkQueue], Any]


WAITING = ItemSnapshot(ID, b"data", State.WAITING, Place.MAIN)
ABANDONED = ItemSnapshot(ID, b"data", State.ABANDONED, Place.PROCESSING)

VERBS: dict[str, Act] = {
    "complete": lambda queue: queue.complete_many([ID]),
    "complete as owner": lambda queue: queue.complete_many([ID], owner=HOLDER),
    "complete with a result": lambda queue: complete_items(
        queue, [ID], result_options=ResultOptions()
    ),
    "release": lambda queue: queue.release_many([ID]),
    "release by force": lambda queue: queue.release_many([ID], force=True),
    "release to the front": lambda queue: queue.release_many([ID], front=True, force=True),
    "delay": lambda queue: queue.release_many([ID], delay_s=60, force=True),
    "bury": lambda queue: queue.bury_many([ID], force=True),
    "bury with a reason": lambda queue: queue.bury_many([ID], reason=b"why", force=True),
    "kick": lambda queue: queue.kick_many([ID]),
    "touch": lambda queue: queue.touch_many([ID]),
    "lease": lambda queue: [queue.lease()],
    "lease by ID": lambda queue: lease_ids(queue, [ID]),
    "remove": lambda queue: remove_items(queue, [ID], NoJournal()),
    "move": lambda queue: move_items(queue, [ID], b"other", NoJournal(), force=True),
    "light clean": lambda queue: queue.light_clean(),
    "deep clean": lambda queue: queue.deep_clean(),
    "promote": lambda queue: promote_items(queue),
    "repair": lambda queue: queue.diagnose(fix=True).findings,
    "restore": lambda queue: restore_items(queue, lines_of([WAITING])),
    "restore without a lease": lambda queue: restore_items(queue, lines_of([ABANDONED])),
    "add": lambda queue: queue.add_many([NewItem(ID, b"data")]),
    "add without a check": lambda queue: queue.add_many([NewItem(ID, b"data")], unique=True),
}


def _waiting(foreign: Foreign) -> None:
    foreign.waiting(ID)


def _abandoned(foreign: Foreign) -> None:
    foreign.abandoned(ID)


def _scheduled(foreign: Foreign) -> None:
    foreign.data(ID)
    foreign.raw.zadd(b"jobs:delayed", {ID: 1})
    foreign.raw.zadd(b"jobs:buried", {ID: 1})


def _missing(foreign: Foreign) -> None:
    foreign.waiting(b"other")


@pytest.mark.parametrize("put", [_waiting, _abandoned, _scheduled, _missing])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["lease", "old_lease"])
def test_no_verb_changes_it(
    queue: WorkQueue,
    raw: Redis,
    foreign: Foreign,
    put: Callable[[Foreign], None],
    verb: str,
    name: str,
) -> None:
    put(foreign)
    key = getattr(QueueKeys(QUEUE), name)(ID)
    raw.rpush(key, b"theirs", b"too")
    with suppress(WrongType):
        list(VERBS[verb](queue) or ())
    assert raw.lrange(key, 0, -1) == [b"theirs", b"too"]
