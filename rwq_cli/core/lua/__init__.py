"""The Lua scripts: one file a verb, each behind the same prelude.

Every verb's script is called with the same KEYS and leading ARGV (`queue_keys`, `queue_args`), and
`shared/prelude.lua` gives them names, so that no body has to know a number. What several verbs
share beyond that is in the other files of `shared`; a verb names those that it needs in its header,
as `-- Uses: guards, places`, and gets them behind the prelude.
"""

import re
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from rwq_cli.core.keys import QueueKeys

_USES = re.compile(r"^-- Uses: (.+)$", re.MULTILINE)


class Script(NamedTuple):
    """A script as it is sent.

    Attributes:
        text: The prelude, what the verb uses, and its own text.
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
    own = (here / "ops" / f"{name}.lua").read_text("utf-8")
    shared = {"prelude": (here / "lib" / "prelude.lua").read_text("utf-8")}
    _add_used(own, shared, here / "lib")
    text = "".join(shared.values()) + own
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def _add_used(text: str, shared: dict[str, str], folder: Path) -> None:
    """Add what a text's header names, each behind what it uses itself."""
    line = _USES.search(text)
    for name in line[1].split(", ") if line else ():
        if name not in shared:
            used = (folder / f"{name}.lua").read_text("utf-8")
            _add_used(used, shared, folder)
            shared[name] = used


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
