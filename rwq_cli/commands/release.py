"""`rwq release`: return items to the queue."""

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import Duration, ForceOption
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.schedule import release as release_items
from rwq_cli.core.model import State, Status
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

_IN_PROCESSING = frozenset({State.LEASED, State.HELD, State.ABANDONED})

_FAILURES = (Status.MOVING, Status.NOT_OWNER, Status.MISSING)
_NOW = kind_of(Status.RELEASED, _FAILURES, neutral=(Status.ALREADY_WAITING,))
_LATER = kind_of(Status.DELAYED, _FAILURES)


@command(
    record=OUTCOME_FIELDS,
    help="Release items: end their leases and return them to the queue, now or after a delay. "
    "Without --state, options choose items in processing.",
    examples=(
        "rwq release -q jobs 4f2a9c",
        "rwq release -q jobs --state abandoned --older-than 1h --dry-run",
        "rwq release -q jobs 4f2a9c --delay 10m",
        "rwq release -q jobs --mine",
        "rwq leases -q jobs --holder 'rwq:*' -n 0 -o ids | rwq release -q jobs --force --yes -",
    ),
    no="none was released: gone, or leased by another session",
)
@selects(_IN_PROCESSING, offered=ITEMS, mine=True)
def release(
    _: Settings,
    choice: Choice,
    front: bool = option("--front", "Return them to the front, in this order."),
    delay_s: Duration | None = option("--delay DUR", "Return them later; 0: now."),
    force: ForceOption = False,
) -> ExitStatus:
    if choice.mine and force:
        raise InvalidArgument.both("--mine", "--force")
    if front and delay_s is not None:
        raise InvalidArgument.both("--front", "--delay")
    if delay_s and delay_s < 0.001:
        raise InvalidArgument("a delay is at least 1ms", "leave --delay out to return them now")
    return choice.act(
        release_items,
        _LATER if delay_s else _NOW,
        "release {} and end the leases of other sessions" if force else "release {}",
        only_many=not force,
        reasons={Status.NOT_OWNER: "--mine leaves it" if choice.mine else "--force ends its lease"},
        force=force,
        own_only=choice.mine,
        front=front,
        delay_s=delay_s or 0.0,
    )
