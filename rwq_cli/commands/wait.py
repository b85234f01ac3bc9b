"""`rwq wait`: wait until a queue is empty or short enough, or items are gone."""

from math import inf
from typing import Annotated

from rwq_cli.cli.command import command
from rwq_cli.cli.open_queues import OpenQueues, warn_missing
from rwq_cli.cli.options import AllQueuesOption, Duration, offer_ids, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.results import WaitResult, wait_for_all
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import COUNT, ID, Fields, field
from rwq_cli.output.sections import Row, Section

_LENGTHS = ("waiting", "processing", "delayed", "buried")

WAIT_FIELDS: Fields[WaitResult] = Fields(
    "A wait",
    field("queue", "counts.queue", "the queue's name", ID),
    field("reached", "reached", "whether the condition was met in time"),
    *(field(name, f"counts.{name}", "as in the counts", COUNT) for name in _LENGTHS),
    field(
        "remaining", "remaining", "how many of the items of `--id` still exist; null without `--id`"
    ),
    field("waited_seconds", lambda waited: round(waited.waited_s, 3), "how long it waited"),
)


def wait_sections(waited: WaitResult) -> list[Section]:
    in_time = ("yes", None) if waited.reached else ("no", "red")
    rows: list[Row] = [("in time", *in_time)]
    if waited.remaining is not None:
        rows.append(("not gone", human.count(waited.remaining), None))
    rows += [(name, human.count(getattr(waited.counts, name)), None) for name in _LENGTHS]
    rows.append(("waited", human.duration(waited.waited_s), None))
    return [Section(escaped(waited.counts.queue), rows, numbers=True)]


@command(
    record=WAIT_FIELDS,
    help="Wait until a queue is empty or short enough, or items are gone; for scripts. Several "
    "queues must meet the condition at the same time. Due items are promoted meanwhile.",
    examples=(
        "rwq wait -q jobs --timeout 1h",
        "rwq wait -q jobs --below 1000",
        "rwq wait -q jobs --id 4f2a9c --timeout 10m",
    ),
    ok="the condition is met",
    no="the condition was not met in time",
    works_read_only=True,
    always_table=True,
)
def wait(
    settings: Settings,
    until_empty: Annotated[
        bool, option("--until-empty", "Until nothing waits, is processed or delayed (the default).")
    ] = False,
    below: Annotated[int | None, option("--below N", "Until fewer than N wait.", min=1)] = None,
    ids: Annotated[
        list[bytes] | None,
        option("--id ID", "Until this item is gone; repeatable.", parse_id, offer=offer_ids()),
    ] = None,
    timeout_s: Annotated[
        Duration | None, option("--timeout DUR", "Give up after this long.", Duration)
    ] = None,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    if until_empty + (below is not None) + bool(ids) > 1:
        raise InvalidArgument(
            "--until-empty, --below and --id cannot be used together", "wait for one of them"
        )
    opened = OpenQueues(settings, all_queues=all_queues, changes=True).find()
    limit_s, promotes = inf if timeout_s is None else timeout_s, not settings.is_read_only
    until = {"below": below, "ids": ids or (), "timeout_s": limit_s, "promotes": promotes}
    waited = [*wait_for_all(opened.queues, **until)]  # type: ignore[arg-type]
    for queue, result in zip(opened.queues, waited, strict=True):
        # It may have been emptied meanwhile.
        if result.counts.is_empty and result.met_at_first:
            warn_missing(settings, queue)
        if not result.reached and settings.output.is_raw:
            settings.environment.note("timed out")
    settings.out.describe(waited, WAIT_FIELDS, wait_sections, is_one=opened.is_one)
    return ExitStatus.OK if all(result.reached for result in waited) else ExitStatus.NO
