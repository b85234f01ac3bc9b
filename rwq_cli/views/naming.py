"""How reports name the queue and the server."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rwq_cli.views.command_lines import CommandLines


class Naming(NamedTuple):
    """How a report names the queue and the server; neither is worked out unless it is needed.

    Attributes:
        summary_end: Returns the end of a summary, such as ` (jobs on prod)`; empty if the
            environment names the queue and the server.
        lines: Returns what makes command lines.
    """

    summary_end: Callable[[], str]
    lines: Callable[[], "CommandLines"]
