"""Another server beside that of the run: `--to-url` and `--to-context`."""

from copy import copy
from typing import Annotated

from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.options import offer_contexts, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.urls import is_same_server
from rwq_cli.output.escape import escaped

ToUrlOption = Annotated[
    str | None, option("--to-url URL", "The server of the other queue, if it is another one.")
]
ToContextOption = Annotated[
    str | None,
    option("--to-context NAME", "The context of that server.", offer=offer_contexts),
]
# What reaches the server of the run, and no other one may see.
_OWN = ("RWQ_PASSWORD", "RWQ_SENTINEL_PASSWORD")


def open_elsewhere(
    settings: Settings, queue: WorkQueue, name: bytes, url: str | None, context: str | None
) -> tuple[WorkQueue, str]:
    """Open the other queue; return it with what to call it: `jobs`, or `jobs on prod`."""
    if url is not None and context is not None:
        raise InvalidArgument.both("--to-url", "--to-context")
    QueueKeys(name)
    other, label = queue.connection, escaped(name)
    if url is not None or context is not None:
        environment = copy(settings.environment)
        variables = environment.variables
        environment.variables = {k: v for k, v in variables.items() if k not in _OWN}
        there = settings.replaced(url=url, context=context, password_file=None)
        there.environment = environment
        opened = open_connection(there)
        label += f" on {there.server_label}"
        if is_same_server(opened.address, queue.connection.address):
            opened.close()
        else:
            other = opened
    if other is queue.connection and name == queue.name:
        raise InvalidArgument("that is the same queue", "name another one")
    return WorkQueue(other, name, holder=settings.holder), label
