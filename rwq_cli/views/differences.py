"""What two queues do not have alike."""

from rwq_cli.core.inspect.differences import Difference
from rwq_cli.output.field import Cut, Field, Fields


def _data(each: Difference) -> str:
    if each.here is None or each.there is None:
        return ""
    return "same" if each.same_data else "differs"


DIFFERENCE_FIELDS: Fields[Difference] = Fields(
    "A difference of two queues",
    Field(
        "id",
        lambda each: each.item_id,
        "the item's ID",
        cut=Cut.MIDDLE,
        is_bytes=True,
        is_id=True,
    ),
    Field(
        "kind",
        lambda each: each.kind.value,
        "`only-here`, `only-there` or `differs`",
        title="DIFFERENCE",
    ),
    Field(
        "here",
        lambda each: None if each.here is None else each.here.value,
        "its state in the first queue; null if there is no such item",
    ),
    Field(
        "there",
        lambda each: None if each.there is None else each.there.value,
        "its state in the other queue; null if there is no such item",
    ),
    Field(
        "same_data",
        lambda each: each.same_data if each.here and each.there else None,
        "whether both have the same data; null if only one has it",
        title="DATA",
        format=_data,
        rank=1,
    ),
    is_stream=True,
)
DIFFERENCE_COLUMNS = ("id", "kind", "here", "there", "same_data")
