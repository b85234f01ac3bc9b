"""The Lua scripts: one file a verb, each behind the same prelude.

Every verb's script is called with the same KEYS and leading ARGV (`queue_keys`, `queue_args`), and
`prelude.lua` gives them names, so that no body has to know a number.
"""

from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.keys import QueueKeys


class Script(NamedTuple):
    """A script as it is sent.

    Attributes:
        text: The prelude and the verb's own text.
        sha1: Its SHA-1 in hexadecimal, by which EVALSHA knows it.
    """

    text: str
    sha1: str


@cache
def load_script(name: str) -> Script:
    """Read a script of this package.

    Args:
        name: The file's name without `.lua`.

    Raises:
        FileNotFoundError: There is no such script.
    """
    # importlib.resources would take longer to load than all our scripts to read.
    here = Path(__file__).parent
    text = (here / "prelude.lua").read_text("utf-8") + (here / f"{name}.lua").read_text("utf-8")
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def queue_keys(keys: QueueKeys) -> tuple[bytes, ...]:
    """The KEYS of every script, as `prelude.lua` binds them."""
    return (
        keys.main,
        keys.processing,
        keys.cleaning,
        keys.delayed,
        keys.buried,
        keys.returns,
    )


def queue_args(keys: QueueKeys) -> tuple[bytes, ...]:
    """The first ARGV of every script, as `prelude.lua` binds them."""
    return (keys.item_prefix, keys.lease_prefix, keys.old_lease_prefix, keys.result_prefix)
