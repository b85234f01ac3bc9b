"""`rwq show`: everything about items."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from rwq_cli.cli.connect import make_command_lines, note_idle_reset, open_queue, warn_if_missing
from rwq_cli.cli.options import NULL_IDS_BOTH_WAYS, offer_ids
from rwq_cli.commands import Duration, ExitStatus, Settings, argument, command, escaped, option
from rwq_cli.core.model import State
from rwq_cli.exit_codes import batch_status
from rwq_cli.input.streams import read_ids
from rwq_cli.views.item_report import (
    EXPLANATION_FIELDS,
    Explanation,
    read_explanations,
    show_sections,
)


@command(
    record=EXPLANATION_FIELDS,
    no="there is no such item",
    partial="some of the items do not exist",
    reads_only=True,
    null=NULL_IDS_BOTH_WAYS,
    always_table=True,
)
def show(
    settings: Settings,
    ids: Annotated[
        list[str] | None, argument("ID...", "IDs, or - for those on stdin.", offer=offer_ids())
    ] = None,
    data: Annotated[bool, option("--data", "Show all of the data.")] = False,
    eta_s: Annotated[Duration | None, option("--eta DUR", "Watch to estimate their turn.")] = None,
) -> ExitStatus:
    """Show everything about items: the state and its reasons, what happens next and when, and the
    commands to run next. To show an item with the ID -, give it on stdin.

    rwq show -q jobs 4f2a9c
    rwq show -q jobs 4f2a9c -o data > job.json
    rwq show -q jobs 4f2a9c --eta 2s
    rwq leases -q jobs -o ids | rwq show -q jobs - -o jsonl
    echo - | rwq show -q jobs -
    """
    words = ids or []
    requested = read_ids(settings.environment, words, null_separated=settings.null_separated)
    queue = open_queue(settings)
    wants_data = data or settings.needs_data
    # Whoever names an item wants to see it, even if that resets its idle time.
    wants_sizes = settings.shows_sizes and not settings.needs_ids_only
    explained = warn_if_missing(
        settings,
        queue,
        read_explanations(
            queue,
            requested,
            make_command_lines(settings, queue.connection),
            partial(settings.environment.note, once=True),
            data=wants_data,
            sizes=wants_sizes,
            eta_s=eta_s,
        ),
        lambda explanation: explanation.item.state is State.GONE and explanation.result is None,
    )
    missing = 0

    def noted() -> Iterator[Explanation]:
        nonlocal missing
        is_noted = wants_sizes and not (data or settings.output.is_raw)
        for explanation in explained:
            if is_noted:
                note_idle_reset(settings, queue, "the times shown are those before this")
            if not explanation.item.state.has_data:
                missing += 1
                if settings.output.is_raw:
                    # The reason for no output is an error, which --quiet does not hide.
                    settings.environment.error(f"no such item: {escaped(explanation.item.item_id)}")
            yield explanation

    is_one = words != ["-"] and len(words) == 1
    total = settings.out.describe(noted(), EXPLANATION_FIELDS, show_sections, is_one=is_one)
    return batch_status(total - missing, missing)
