"""The repairs of a clean, each with its reason."""

from rwq_cli.core.repair.actions import CleanAction, Repair
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.outcomes import WORDS, Kind, Row

_REPAIRS = tuple(repair.value for repair in Repair)


def _preview(action: CleanAction) -> str:
    verb = WORDS[action.action.value].infinitive
    return f"would {verb} {escaped(action.item_id)}: {action.state.value}"


CLEAN_FIELDS: Fields[Row[CleanAction]] = Fields(
    "A repair of a clean",
    Field("queue", lambda row: row.queue, "the queue's name", is_bytes=True),
    Field("id", lambda row: row.what.item_id, "the item's ID", is_bytes=True, is_id=True),
    Field(
        "action",
        lambda row: row.what.action.value,
        "`returned`, `dropped`, `promoted`, `pruned` or `buried`",
    ),
    Field("state", lambda row: row.what.state.value, "the state that the item was in"),
    Field(
        "where",
        lambda row: row.what.where,
        "the key that was changed: `main`, `processing`, `delayed`, and so on",
    ),
    Field("dry_run", lambda row: row.dry_run, "whether nothing was changed"),
    is_stream=True,
)
CLEAN: Kind[CleanAction] = Kind(
    CLEAN_FIELDS,
    word=lambda action: action.action.value,
    item_id=lambda action: action.item_id,
    counted=_REPAIRS,
    shown=frozenset(_REPAIRS),
    idle="nothing to clean",
    # For cron, which mails what is printed.
    news=frozenset(_REPAIRS),
    preview=_preview,
)
