"""How `rwq clean` cleans: its options."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from rwq_cli.cli.options import (
    DEFAULT_GRACE,
    AllQueuesOption,
    DryRunOption,
    Duration,
    GraceOption,
    ListenOption,
    NotifyOption,
    interval,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanAction, CleanBatch, Repair, deep_clean, light_clean
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.outcomes import WORDS, Kind, Row

_REPAIRS = tuple(repair.value for repair in Repair)


def _preview(action: CleanAction) -> str:
    verb = WORDS[action.action.value].infinitive
    return f"would {verb} {escaped(action.item_id)}: {action.state.value}"


CLEAN_FIELDS: Fields[Row[CleanAction]] = Fields(
    "A repair of a clean",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "what.item_id", "the item's ID", ID),
    field("action", "what.action", "`returned`, `dropped`, `promoted`, `pruned` or `buried`"),
    field("state", "what.state", "the state that the item was in"),
    field(
        "where",
        "what.where",
        "the key that was changed: `main`, `processing`, `delayed`, and so on",
    ),
    field("dry_run", "dry_run", "whether nothing was changed"),
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


class Cleaning(NamedTuple):
    settings: Settings
    grace_s: GraceOption = DEFAULT_GRACE
    bury_after: Annotated[
        int | None,
        option(
            "--bury-after N",
            "Bury an item instead of returning it if it has already been returned N times, by "
            "cleans or after failed attempts.",
            min=0,
        ),
    ] = None
    dry_run: DryRunOption = False
    every: Annotated[
        Duration | None,
        option(
            "--every DUR",
            "Clean about this often until stopped; if the server is lost, wait for it.",
            interval,
        ),
    ] = None
    notify: NotifyOption = False
    listen: ListenOption = None
    all_queues: AllQueuesOption = False

    def batches(self, queue: WorkQueue, *, is_deep: bool) -> Iterator[CleanBatch]:
        clean = deep_clean if is_deep else light_clean
        return clean(
            queue, grace_s=self.grace_s, bury_after=self.bury_after, dry_run=self.dry_run
        ).batches
