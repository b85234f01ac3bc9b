"""The result of waiting for a queue or for items."""

from rwq_cli.core.items.waiting import WaitResult
from rwq_cli.core.model import Counts
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.sections import Row, Section
from rwq_cli.views.counts import COUNT_FIELDS

_LENGTHS = ("waiting", "processing", "delayed", "buried")


def _counts(waited: WaitResult) -> Counts:
    return waited.counts


WAIT_FIELDS: Fields[WaitResult] = Fields(
    "A wait",
    COUNT_FIELDS["queue"].within(_counts),
    Field("reached", lambda waited: waited.reached, "whether the condition was met in time"),
    *(COUNT_FIELDS[name]._replace(help="as in the counts").within(_counts) for name in _LENGTHS),
    Field(
        "remaining",
        lambda waited: waited.remaining,
        "how many of the items of `--id` still exist; null without `--id`",
    ),
    Field("waited_seconds", lambda waited: round(waited.waited_s, 3), "how long it waited"),
)


def wait_sections(waited: WaitResult) -> list[Section]:
    """The result of waiting for one queue."""
    in_time: Row = ("in time", "yes", None) if waited.reached else ("in time", "no", "red")
    rows = [in_time]
    if waited.remaining is not None:
        rows.append(("not gone", human.count(waited.remaining), None))
    rows += [(name, human.count(getattr(waited.counts, name)), None) for name in _LENGTHS]
    rows.append(("waited", human.duration(waited.waited_s), None))
    return [Section(escaped(waited.counts.queue), rows, numbers=True)]
