"""The outcomes of verbs that change items."""

from collections.abc import Sequence

from rwq_cli.core.model import Outcome, Status
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.outcomes import Kind, Row

OUTCOME_FIELDS: Fields[Row[Outcome]] = Fields(
    "What became of an item",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "what.item_id", "the item's ID", ID),
    field(
        "status",
        "what.status",
        "what was done, or why nothing was: see [below](#what-became-of-items)",
    ),
    field("holder", "what.holder", "who holds the item, if that is why nothing was done"),
    is_stream=True,
)


def kind_of(
    success: Status, failures: Sequence[Status], *, neutral: Sequence[Status] = ()
) -> Kind[Outcome]:
    """How outcomes of a verb on items are counted; JSON always has `failures` and `neutral`."""
    return Kind(
        OUTCOME_FIELDS,
        word=lambda outcome: outcome.status.value,
        item_id=lambda outcome: outcome.item_id,
        counted=(success.value, *(status.value for status in failures)),
        # An item that is not what it was chosen as is left alone.
        failed=frozenset(map(str, (*failures, Status.CHANGED, Status.WRONG_TYPE))),
        shown=frozenset({success.value}),
        json_counted=tuple(map(str, neutral)),
    )
