"""`rwq tail`: what happens to items, as it happens."""

from collections.abc import Iterator
from math import inf
from time import monotonic
from typing import Annotated

from rwq_cli.cli.choosing import filters
from rwq_cli.cli.connect import OpenQueues, warn_missing
from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.options import AllQueuesOption
from rwq_cli.commands import Duration, ExitStatus, Settings, command, option
from rwq_cli.core.errors import ServerError
from rwq_cli.core.inspect.selection import Selection
from rwq_cli.core.keys import glob_pattern
from rwq_cli.core.model import Event
from rwq_cli.views.events import EVENT_FIELDS, PLAIN, event_line

# What chooses by more than keys and leases.
_OF_DATA = ("match", "where", "older_than_s", "reason_glob", "returns", "ttl")
# Each look waits for something to happen.
_EVERY_S = 0.001


@command(
    record=EVENT_FIELDS,
    reads_only=True,
    no="fewer than -n events happened in time",
    plain={"an event": ", ".join(PLAIN)},
)
@filters(without=_OF_DATA)
def tail(
    settings: Settings,
    *,
    selection: Selection,
    limit: Annotated[int | None, option("-n, --limit N", "End after N events.", min=1)] = None,
    timeout_s: Annotated[Duration | None, option("--timeout DUR", "End after this long.")] = None,
    all_events: Annotated[
        bool, option("--all-events", "Also renewed leases, and edited data.")
    ] = False,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    """Show what happens to items, whoever does it, until stopped: added, leased, returned, delayed,
    buried, lost by their worker, completed. --state is the state before or after.

    rwq tail -q jobs
    rwq tail -q jobs --state abandoned -o jsonl
    rwq tail -q 'mail:*' --holder 'worker-3*'
    rwq tail -q jobs --id-glob 4f2a9c -n 1 --timeout 10m
    """
    if limit is None and timeout_s is None:
        settings.check_endless("tail without -n and --timeout")
    opened = OpenQueues(settings, all_queues=all_queues).find()
    # A server that cannot be reached now is an error; one that is lost later is waited for.
    opened.connection.call("PING")
    for queue in opened.queues:
        warn_missing(settings, queue)
    settings.end_progress()
    count = 0

    def events() -> Iterator[Event]:
        nonlocal count
        limit_s = inf if timeout_s is None else timeout_s
        for event in _follow(settings, opened, selection, limit_s):
            if event.is_usual and not all_events:
                continue
            count += event.item_id is not None
            yield event
            if count == limit:
                return

    with ending_on_terminate():
        if settings.output.is_table:
            painter = settings.out.painter
            for event in events():
                painter.lines([event_line(event, has_queue=not opened.is_one)])
        else:
            settings.out.table(events(), EVENT_FIELDS, PLAIN, plain_columns=PLAIN)
        settings.environment.stdout.flush()
    return ExitStatus.NO if limit is not None and count < limit else ExitStatus.OK


def _follow(
    settings: Settings, opened: OpenQueues, selection: Selection, timeout_s: float
) -> Iterator[Event]:
    """Yield what happens to the chosen items; what was written before is passed on meanwhile."""
    from rwq_cli.core.clock import Clock
    from rwq_cli.core.inspect.events import Tail
    from rwq_cli.service.supervision import Rounds

    environment = settings.environment
    ids, holders = (
        glob_pattern(b"*" if glob is None else glob).match
        for glob in (selection.id_glob, selection.holder_glob)
    )
    following = Tail(lambda item_id: ids(item_id) is not None)

    def is_chosen(event: Event) -> bool:
        if selection.states is not None and selection.states.isdisjoint(
            (event.before, event.after)
        ):
            return False
        return selection.holder_glob is None or holders(event.holder or b"") is not None

    rounds = Rounds(
        _EVERY_S, Clock(), note=lambda line: environment.error(f"rwq: {line}"), is_exact=True
    )
    ends_s = monotonic() + timeout_s
    try:
        for _ in rounds:
            if monotonic() > ends_s:
                return
            try:
                happened = following.look(opened.find().queues)
            except ServerError as error:
                rounds.failed(error)
                continue
            for event in happened:
                if event.item_id is None or is_chosen(event):
                    yield event
            environment.stdout.flush()
    finally:
        following.close()
