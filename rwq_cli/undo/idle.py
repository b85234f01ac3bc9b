"""The last verb that left nothing to undo: `rwq undo` must not take an older file in its place.

It is kept by user and server, beside the undo files; without such files there is nothing to keep.
"""

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import NamedTuple

from rwq_cli.undo.directory import list_numbered


class IdleVerb(NamedTuple):
    """The last verb of a user on a server, if it left nothing to undo.

    Attributes:
        after: The latest file when it ended.
        time_s: When, by this machine's clock.
    """

    verb: str
    queue: str
    after: int
    time_s: float


def _idle_path(directory: Path, server: str, by: str) -> Path:
    return directory / f".idle-{sha256(f'{server} {by}'.encode()).hexdigest()[:16]}"


def record_idle(directory: Path, server: str, by: str, verb: str, queue: str) -> None:
    """Record that a verb has ended and left nothing to undo."""
    # Best effort: what a verb does must not fail for it.
    with suppress(OSError):
        if files := list_numbered(directory):
            idle = IdleVerb(verb, queue, max(files), time())
            _idle_path(directory, server, by).write_text(json.dumps(idle))


def read_idle(directory: Path, server: str, by: str) -> IdleVerb | None:
    with suppress(OSError, ValueError, TypeError):
        return IdleVerb(*json.loads(_idle_path(directory, server, by).read_text()))
    return None


def forget_idle(directory: Path, server: str, by: str) -> None:
    with suppress(OSError):
        _idle_path(directory, server, by).unlink()
