"""Names that are suggested for queues."""

from collections.abc import Iterable

from rwq_cli.core.server.suggest import SuggestedName
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.report import Column, Records, View

_COLUMNS = (
    Column[SuggestedName]("QUEUE", lambda each: each.queue),
    Column[SuggestedName]("SLOT", lambda each: each.slot, right=True),
    Column[SuggestedName]("NODE", lambda each: each.node),
)


def suggestions_report(names: Iterable[SuggestedName]) -> Records[SuggestedName]:
    """The report of `rwq queues --suggest`."""
    view = View[SuggestedName](
        lambda each: {
            **bytes_fields("queue", each.queue),
            "slot": each.slot,
            "node": each.node,
        },
        lambda each: each.queue,
        SuggestedName(b"", 0, ""),
        _COLUMNS,
    )
    return Records(view=view, records=names)
