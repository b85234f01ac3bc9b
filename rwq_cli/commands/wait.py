"""`rwq wait`: wait until a queue is empty or short enough, or items are gone."""

from functools import partial
from math import inf
from typing import Annotated, Any

from rwq_cli.cli.connect import OpenQueues, warn_missing
from rwq_cli.cli.options import AllQueuesOption, TimeoutOption, offer_ids, parse_id
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.items.results import WaitResult, wait_for_all
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.repair.clean import clean as clean_queue
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import COUNT, DURATION, ID, Fields, field
from rwq_cli.output.sections import Section

_LENGTHS = ("waiting", "processing", "delayed", "buried")
_IN_TIME: dict[str, Any] = {
    "show": {True: "yes", False: "no"}.get,
    "style": lambda waited: None if waited.reached else "red",
}
WAIT_FIELDS: Fields[WaitResult] = Fields(
    "A wait",
    field("queue", "counts.queue", "the queue's name", ID),
    field("reached", "reached", "whether the condition was met in time", _IN_TIME, "IN TIME"),
    *(field(name, f"counts.{name}", "as in the counts", COUNT) for name in _LENGTHS),
    field("remaining", "remaining", "how many of `--id` still exist; else null", COUNT, "NOT GONE"),
    field(
        *("waited_seconds", lambda waited: round(waited.waited_s, 3), "how long it waited"),
        *(DURATION, "WAITED"),
    ),
)


def _sections(waited: WaitResult) -> list[Section]:
    rows = WAIT_FIELDS.rows(waited, "reached", "remaining", *_LENGTHS, "waited_seconds")
    return [Section(escaped(waited.counts.queue), rows, numbers=True)]


@command(
    record=WAIT_FIELDS,
    ok="the condition is met",
    no="the condition was not met in time",
    works_read_only=True,
    always_table=True,
    excludes=["--until-empty --below --id"],
)
def wait(
    settings: Settings,
    until_empty: Annotated[  # noqa: ARG001
        bool,
        option(
            "--until-empty",
            "Until none is waiting, in processing or delayed (default). Buried ones do not count.",
        ),
    ] = False,
    below: Annotated[int | None, option("--below N", "Until fewer than N wait.", min=1)] = None,
    ids: Annotated[
        list[bytes] | None,
        option("--id ID", "Until this item is gone (repeatable).", parse_id, offer=offer_ids()),
    ] = None,
    clean: Annotated[
        bool, option("--clean", "Do light cleans meanwhile, which return abandoned items.")
    ] = False,
    timeout_s: TimeoutOption = None,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    """Wait until a queue is empty or short enough, or items are gone; for scripts. Several queues
    must meet the condition at the same time. Due items are promoted meanwhile.

    rwq wait -q jobs --timeout 1h
    rwq wait -q jobs --clean --below 1000
    rwq wait -q jobs --id 4f2a9c --timeout 10m
    """
    opened = OpenQueues(settings, all_queues=all_queues, changes=True).find()
    if clean and settings.is_read_only:
        raise InvalidArgument("--clean changes the queue, and the context is read-only")
    meanwhile = partial(clean_queue, deep=False) if clean else promote
    waited = list(
        wait_for_all(
            opened.queues,
            below=below,
            ids=ids or (),
            timeout_s=inf if timeout_s is None else timeout_s,
            meanwhile=None if settings.is_read_only else meanwhile,
        )
    )
    for queue, result in zip(opened.queues, waited, strict=True):
        # It may have been emptied meanwhile.
        if result.counts.is_empty and result.met_at_first:
            warn_missing(settings, queue)
        if not result.reached and settings.output.is_raw:
            settings.environment.note("timed out")
    settings.out.describe(waited, WAIT_FIELDS, _sections, is_one=opened.is_one)
    return ExitStatus.OK if all(result.reached for result in waited) else ExitStatus.NO
