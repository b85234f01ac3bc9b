"""The environment of a command: its item, and what lets `rwq` work inside of it."""

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence

from rwq_cli.core.work.job import Job

_OWN = (b"RWQ_ID", b"RWQ_ID_B64", b"RWQ_ATTEMPT", b"RWQ_RETURNS", b"RWQ_LAST")
# By its value, the processes of a worker are found.
_WORKER = b"RWQ_WORKER"


class Variables:
    """Makes the environment of each command.

    Args:
        inherited: The environment of rwq.
        server: The variables that name the server, and `None` for those that must be unset.
        holder_prefix: What precedes the name of a session in the holder of a lease.
        lease_s: How long a lease lasts, seconds.

    Attributes:
        mark: An entry of every environment that `of` makes, and of no other.
    """

    def __init__(
        self,
        inherited: Mapping[bytes, bytes],
        server: Mapping[bytes, bytes | None],
        holder_prefix: bytes,
        lease_s: float,
    ) -> None:
        merged = {**inherited, **server}
        self._holder_prefix = holder_prefix
        worker = merged[_WORKER] = os.urandom(8).hex().encode()
        self.mark = _WORKER + b"=" + worker
        merged[b"RWQ_LEASE_SECONDS"] = f"{lease_s:g}".encode()
        # A worker may run in a command of another one.
        self._common = {
            name: value for name, value in merged.items() if value is not None and name not in _OWN
        }

    def of(self, items: Sequence[Job], *, is_batch: bool) -> dict[bytes, bytes]:
        """The environment for these items, which are of one queue.

        Args:
            items: The items.
            is_batch: Whether the command gets them as lines, so that no variable names an item.
        """
        first = items[0]
        session = self._session_of(first.holder)
        made = {**self._common, b"RWQ_QUEUE": first.queue, b"RWQ_SESSION": session}
        made[b"RWQ_SLOT"] = b"%d" % first.slot
        if not is_batch:
            made.update(_naming(first.item_id))
            made[b"RWQ_ATTEMPT"] = b"%d" % first.attempt
            made[b"RWQ_RETURNS"] = b"%d" % first.returns
            made[b"RWQ_LAST"] = b"1" if first.is_last else b"0"
        return made

    def _session_of(self, holder: bytes) -> bytes:
        return holder.removeprefix(self._holder_prefix)


def _naming(item_id: bytes) -> dict[bytes, bytes]:
    """RWQ_ID, unless the ID holds NUL; RWQ_ID_B64 for one that is not text."""
    named = {} if b"\0" in item_id else {b"RWQ_ID": item_id}
    if named and item_id.isascii():
        return named
    try:
        item_id.decode()
        is_text = bool(named)
    except UnicodeDecodeError:
        is_text = False
    return named if is_text else {**named, b"RWQ_ID_B64": b64encode(item_id)}
