"""The outcomes of verbs that change items."""

from collections.abc import Sequence

from rwq_cli.core.model import Outcome, Status
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.outcomes import Kind, Row

OUTCOME_FIELDS: Fields[Row[Outcome]] = Fields(
    "What became of an item",
    Field("queue", lambda row: row.queue, "the queue's name", is_bytes=True),
    Field("id", lambda row: row.what.item_id, "the item's ID", is_bytes=True, is_id=True),
    Field(
        "status",
        lambda row: row.what.status.value,
        "what was done, or why nothing was: see [below](#what-became-of-items)",
    ),
    Field(
        "holder", lambda row: row.what.holder, "who holds the item, if that is why nothing was done"
    ),
    is_stream=True,
)


def kind_of(
    success: Status, failures: Sequence[Status], *, neutral: Sequence[Status] = ()
) -> Kind[Outcome]:
    """How the outcomes of a verb on items are counted.

    Args:
        success: The status of an item on which the verb succeeded.
        failures: The statuses of an item on which it failed; JSON always counts them.
        neutral: Statuses that are neither; JSON always counts them, too.
    """
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
