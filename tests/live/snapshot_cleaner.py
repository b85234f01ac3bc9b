"""The cleaners of redis-work-queue, one command after the other.

Both read the lists once. Then they walk what they have read: for each ID they look only at the
lease key of their own generation, and return the item whatever has happened since. So their
generators can be stopped between any two of their commands.
"""

from collections.abc import Callable, Iterator

import redis

from rwq_cli.core.keys import QueueKeys


class SnapshotCleaner:
    """A cleaner of one generation."""

    def __init__(
        self,
        raw: redis.Redis,
        keys: QueueKeys,
        *,
        old: bool,
        on_look: Callable[[bytes], None] = lambda _: None,
        on_push: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self._raw = raw
        self._keys = keys
        self._lease = keys.old_lease if old else keys.lease
        self._on_look = on_look
        self._on_push = on_push

    def light(self) -> Iterator[str]:
        """A light clean; it stops behind each command."""
        processing = self._raw.lrange(self._keys.processing, 0, -1)
        yield "snapshot"
        for item_id in processing:
            leased = self._is_leased(item_id)
            yield "exists"
            if leased:
                continue
            if self._raw.exists(self._keys.item(item_id)):
                self._push(item_id)
            else:
                self._raw.lrem(self._keys.processing, 0, item_id)
            yield "push"

    def deep(self) -> Iterator[str]:
        """A deep clean; it stops behind each command."""
        prefix = self._keys.item(b"")
        pipeline = self._raw.pipeline()
        pipeline.keys(prefix + b"*")
        pipeline.lrange(self._keys.main, 0, -1)
        items, main = pipeline.execute()
        yield "snapshot"
        waiting = set(main)
        for key in items:
            item_id = key[len(prefix) :]
            if item_id in waiting:
                continue
            leased = self._is_leased(item_id)
            yield "exists"
            if not leased:
                self._push(item_id)
                yield "push"

    def _is_leased(self, item_id: bytes) -> bool:
        if self._raw.exists(self._lease(item_id)):
            return True
        self._on_look(item_id)
        return False

    def _push(self, item_id: bytes) -> None:
        self._on_push(item_id)
        pipeline = self._raw.pipeline()
        pipeline.lrem(self._keys.processing, 0, item_id)
        pipeline.lpush(self._keys.main, item_id)
        pipeline.execute()
