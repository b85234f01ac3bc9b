"""`rwq complete`: finish items."""

import os
from functools import partial
from typing import Annotated, Any

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import offer_holders, result_duration
from rwq_cli.cli.outcomes import OUTCOME_FIELDS, SHOW, kind_of
from rwq_cli.commands import Duration, ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.complete import ResultOptions, complete as complete_items
from rwq_cli.core.model import State, Status
from rwq_cli.input.streams import read_payload
from rwq_cli.output import human

_TTL = human.duration(RESULT_TTL_S)
_KIND = kind_of(Status.COMPLETED, (Status.MISSING, Status.NOT_OWNER))


@command(
    record=OUTCOME_FIELDS,
    destructive=True,
    no="none was completed by this call: gone, or leased by another session",
)
@selects(frozenset({State.WAITING}), ITEMS, mine=True)
def complete(
    settings: Settings,
    choice: Choice,
    owner: Annotated[
        str | None,
        option("--owner SESSION", "Only what this session or holder holds.", offer=offer_holders),
    ] = None,
    result: Annotated[
        str | None, option("--result FILE", "Store this file as its result; - is stdin.")
    ] = None,
    rejected: Annotated[bool, option("--rejected", "It was given up: store rejected.")] = False,
    result_ttl_s: Annotated[
        Duration | None,
        option("--result-ttl DUR", f"Keep it for this long.  [default: {_TTL}]", result_duration),
    ] = None,
) -> ExitStatus:
    """Complete items: remove them as done, no matter who holds them. If several calls complete the
    same item, one of them succeeds. --result and --rejected store a result for rwq result. Without
    --state and --all, options choose waiting items; what they choose is written to an undo file
    first.

    rwq complete -q jobs 4f2a9c
    rwq complete -q jobs --state leased --match '"user": *42' --dry-run
    rwq lease -q jobs -n 1000 -o ids | rwq complete -q jobs -
    rwq complete -q jobs 4f2a9c --mine
    rwq complete -q jobs 4f2a9c --result answer.json --result-ttl 1d
    echo 'no such user' | rwq complete -q jobs 4f2a9c --rejected --result -
    """
    if owner is not None and choice.mine:
        raise InvalidArgument.both("--owner", "--mine")
    if owner == "":
        raise InvalidArgument("--owner is empty", "is a variable in the script unset?")
    if result == "-" and choice.from_stdin:
        raise InvalidArgument(
            "stdin cannot hold both the IDs and the result", "put one of them in a file"
        )
    kept, data = None, None
    if result is not None:
        data = read_payload(settings.environment, result, "result")
    if result is not None or result_ttl_s is not None or rejected:
        status = ResultStatus.REJECTED if rejected else ResultStatus.COMPLETED
        kept = ResultOptions(data, status, RESULT_TTL_S if result_ttl_s is None else result_ttl_s)
    options: dict[str, Any] = {"journal": None}
    if not choice.by_name:
        # Scripts complete IDs one by one, and need not wait for these imports.
        from rwq_cli.commands.undoing import Undo

        options = {"undo": partial(Undo, verb="complete")}
    owners = [settings.holder] if choice.mine else None
    if owner is not None:
        owners = [os.fsencode(owner), settings.holder_of(owner)]
    without = "--mine" if choice.mine else "--owner"
    return choice.act(
        complete_items,
        _KIND,
        "complete {} and delete their data",
        only_many=True,
        reasons={Status.NOT_OWNER: f"{SHOW} says more; without {without} it would be completed"},
        owner=owners,
        result_options=kept,
        **options,
    )
