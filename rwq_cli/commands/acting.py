"""Verbs that say where items wait: `rwq release`, `rwq bury`, `rwq kick` and `rwq touch`."""

import os

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import DEFAULT_LEASE, ForceOption, LeaseForOption
from rwq_cli.commands import Duration, ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items import schedule
from rwq_cli.core.model import State, Status
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

_IN_PROCESSING = frozenset({State.LEASED, State.HELD, State.ABANDONED})
_LEASED = frozenset(state for state in State if state.is_leased)

_FAILURES = (Status.MOVING, Status.NOT_OWNER, Status.MISSING)
_RELEASED = kind_of(Status.RELEASED, _FAILURES, neutral=(Status.ALREADY_WAITING,))
_DELAYED = kind_of(Status.DELAYED, _FAILURES)
_BURIED = kind_of(Status.BURIED, _FAILURES, neutral=(Status.ALREADY_BURIED,))
_KICKED = kind_of(Status.KICKED, (Status.NOT_BURIED, *_FAILURES))
_TOUCHED = kind_of(Status.TOUCHED, (Status.NOT_LEASED, Status.MISSING))


@command(record=OUTCOME_FIELDS, no="none was released: gone, or leased by another session")
@selects(_IN_PROCESSING, offered=ITEMS, mine=True)
def release(
    _: Settings,
    choice: Choice,
    front: bool = option("--front", "Return them to the front, in this order."),
    delay_s: Duration | None = option("--delay DUR", "Return them later; 0: now."),
    force: ForceOption = False,
) -> ExitStatus:
    """Release items: end their leases and return them to the queue, now or after a delay. Without
    --state, options choose items in processing.

    rwq release -q jobs 4f2a9c
    rwq release -q jobs --state abandoned --older-than 1h --dry-run
    rwq release -q jobs 4f2a9c --delay 10m
    rwq release -q jobs --mine
    rwq leases -q jobs --holder 'rwq:*' -n 0 -o ids | rwq release -q jobs --force --yes -
    """
    if choice.mine and force:
        raise InvalidArgument.both("--mine", "--force")
    if front and delay_s is not None:
        raise InvalidArgument.both("--front", "--delay")
    if delay_s and delay_s < 0.001:
        raise InvalidArgument("a delay is at least 1ms", "leave --delay out to return them now")
    return choice.act(
        schedule.release,
        _DELAYED if delay_s else _RELEASED,
        "release {} and end the leases of other sessions" if force else "release {}",
        only_many=not force,
        reasons={Status.NOT_OWNER: "--mine leaves it" if choice.mine else "--force ends its lease"},
        force=force,
        own_only=choice.mine,
        front=front,
        delay_s=delay_s or 0.0,
    )


@command(record=OUTCOME_FIELDS, no="none was buried: gone, or leased by another session")
@selects(frozenset({State.WAITING, State.ABANDONED}), offered=ITEMS, has_reason=True)
def bury(
    _: Settings,
    choice: Choice,
    reason: bytes | None = option(
        "--reason TEXT",
        f"The reason, up to {schedule.REASON_BYTES_MAX:,} bytes; replaces the reason of items that "
        f"are already buried.  [default: {schedule.NO_REASON.decode()}]",
        os.fsencode,
    ),
    force: ForceOption = False,
) -> ExitStatus:
    """Bury items with a reason: workers and cleaners leave them alone until they are kicked.
    Without --state, the options choose waiting and abandoned items, and with --force also leased
    ones.

    rwq bury -q jobs 4f2a9c --reason 'crashes the parser'
    rwq bury -q jobs --match '"version": *1\\b' --reason 'old format' --dry-run
    rwq ls -q jobs --older-than 7d -n 0 -o ids | rwq bury -q jobs --reason stale -
    """
    return (choice.including(_LEASED) if force else choice).act(
        schedule.bury,
        _BURIED,
        "bury {} and end the leases of other sessions" if force else "bury {}",
        only_many=not force,
        reasons={Status.NOT_OWNER: "--force ends its lease"},
        reason=reason,
        force=force,
    )


@command(record=OUTCOME_FIELDS, no="none was kicked: not buried, or gone")
@selects(frozenset({State.BURIED}))
def kick(_: Settings, choice: Choice) -> ExitStatus:
    """Return buried items to the end of the queue, in the order of the IDs, else the longest buried
    first, and reset their counts of returns.

    rwq kick -q jobs 4f2a9c
    rwq kick -q jobs -n 10
    rwq kick -q jobs --where user=42 --dry-run
    """
    reasons = {Status.NOT_OWNER: "rwq release --force ends its lease"}
    return choice.act(schedule.kick, _KICKED, "kick {}", only_many=True, reasons=reasons)


@command(record=OUTCOME_FIELDS, no="none of the items has a live lease")
@selects(frozenset({State.LEASED}), _LEASED, asks=False)
def touch(_: Settings, choice: Choice, lease_s: LeaseForOption = DEFAULT_LEASE) -> ExitStatus:
    """Renew live leases, no matter who holds them. Each then expires after --for.

    rwq touch -q jobs 4f2a9c --for 10m
    rwq touch -q jobs --all --for 1h
    """
    # What is not leased any more has no lease to renew, whatever it was chosen for.
    return choice.act(
        lambda queue, ids, expected, **how: schedule.touch(queue, ids, **how),  # noqa: ARG005
        _TOUCHED,
        lease_s=lease_s,
    )
