"""`rwq release`: return items to the queue."""

from typing import Annotated

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import ForceOption, RateOption
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import Duration, ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items import schedule
from rwq_cli.core.model import State, Status

_IN_PROCESSING = frozenset({State.LEASED, State.HELD, State.ABANDONED})
_FAILURES = (Status.MOVING, Status.NOT_OWNER, Status.MISSING)
_RELEASED = make_outcome_kind(Status.RELEASED, _FAILURES, neutral=(Status.ALREADY_WAITING,))
_DELAYED = make_outcome_kind(Status.DELAYED, _FAILURES)


@command(
    record=OUTCOME_FIELDS,
    no="none was released: gone, or leased by another session",
    excludes=["--mine --force", "--front --delay", "--front --rate"],
)
@selects(_IN_PROCESSING, offered=ITEMS, mine=True)
def release(
    _: Settings,
    choice: Choice,
    front: Annotated[bool, option("--front", "Return them to the front, in this order.")] = False,
    delay_s: Annotated[Duration | None, option("--delay DUR", "Return them later; 0: now.")] = None,
    force: ForceOption = False,
    rate: RateOption = None,
) -> ExitStatus:
    """Release items: end their leases and return them to the end of the queue, now or after a
    delay. Without --state, options choose items in processing.

    rwq release -q jobs 4f2a9c
    rwq release -q jobs --state abandoned --older-than 1h --dry-run
    rwq release -q jobs 4f2a9c --delay 10m
    rwq release -q jobs --mine
    rwq leases -q jobs --holder 'rwq:*' -n 0 -o ids | rwq release -q jobs --force --yes -
    """
    if delay_s and delay_s < 0.001:
        raise InvalidArgument("a delay is at least 1ms", "leave --delay out to return them now")
    return choice.act(
        schedule.release,
        _DELAYED if delay_s else _RELEASED,
        "release {} and end the leases of other sessions" if force else "release {}",
        only_many=not force,
        reasons={Status.NOT_OWNER: "--mine leaves it" if choice.mine else "--force ends its lease"},
        rate=rate,
        force=force,
        own_only=choice.mine,
        front=front,
        delay_s=delay_s or 0.0,
    )
