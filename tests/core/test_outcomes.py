"""Verbs on many IDs, and what they must not take for an item: `jobs` beside `jobs:item:mail`."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import WrongType
from tests.conftest import Backend


@pytest.mark.parametrize("verb", ["complete", "release"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_the_list_of_another_queue_is_no_item(
    backend: Backend, queue: WorkQueue, raw: Redis, verb: str, dry_run: bool
) -> None:
    other = WorkQueue(backend.connect(), b"jobs:item:mail")
    other.add(b"data", b"a")
    before = {key: raw.dump(key) for key in raw.scan_iter()}
    with pytest.raises(WrongType) as caught:
        list(getattr(queue, verb)([b"mail:queue"], dry_run=dry_run))
    assert caught.value.message == (
        "jobs:item:mail:queue holds another type than the protocol says"
    )
    assert {key: raw.dump(key) for key in raw.scan_iter()} == before
