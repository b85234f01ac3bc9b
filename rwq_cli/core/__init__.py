"""The queue library, which can be used without the command line.

`from rwq_cli.core import Server, WorkQueue, connect`

It imports only the standard library and redis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rwq_cli.core.public import *  # noqa: F403


# Of what is asked for here, that which is in lower case. Python asks here for each module, too.
_LOWER_CASE = ("connect", "queue_names", "__all__")


def __getattr__(name: str) -> Any:
    # Loading redis takes most of a command's start-up; errors and `--version` do not need it.
    if name.islower() and name not in _LOWER_CASE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = import_module("rwq_cli.core.public")
    if name == "__all__":
        return [public_name for public_name in vars(public) if not public_name.startswith("_")]
    return getattr(public, name)


def __dir__() -> list[str]:
    return [*globals(), *__getattr__("__all__")]
