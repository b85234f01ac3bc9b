"""The fields of each command's records, for the reference, `--fields` and `--sort`."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from rwq_cli.output.field import Fields
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.records import check_format, check_order, in_order

# The commands that write their records as they come, in no other order.
_STREAMS = frozenset(
    {
        *("add", "complete", "touch", "release", "bury", "kick", "edit", "rm", "mv"),
        *("purge", "import", "clean light", "clean deep", "export", "work"),
    }
)


def check_options(
    path: tuple[str, ...], given: Mapping[str, object], options: OutputOptions
) -> None:
    """Raise `InvalidArgument` for a format, a field or an order that a command does not have.

    Args:
        path: The command's name, after that of its group.
        given: Its own options.
        options: The output options.
    """
    fields, is_stream = fields_of(path), " ".join(path) in _STREAMS
    if path == ("undo",) and not given["list_"]:
        fields, is_stream = fields_of(("purge",)), True
        if given["prune"]:
            from rwq_cli.views.undo_files import PRUNED_FIELDS

            fields = PRUNED_FIELDS
    elif path == ("work",) and given["dry_run"]:
        from rwq_cli.views.working import PLAN_FIELDS

        fields, is_stream = PLAN_FIELDS, False
    elif path in (("context", "set"), ("context", "use"), ("context", "rm")):
        fields = fields_of(("context", "list"))
    if fields is None:
        return
    if is_stream:
        check_order(options)
    else:
        check_format(fields, options)
        in_order((), fields, options)
    if options.fields is not None:
        fields.only(options.fields)


@cache
def fields_of(path: tuple[str, ...]) -> Fields[Any] | None:
    """The fields of a command's records; None for one without."""
    match " ".join(path):
        case "ls" | "leases" | "lease":
            from rwq_cli.views.items import ITEM_FIELDS

            return ITEM_FIELDS
        case "queues" | "stats":
            from rwq_cli.views.counts import COUNT_FIELDS

            return COUNT_FIELDS
        case "show":
            from rwq_cli.views.item_report import SHOWN_FIELDS

            return SHOWN_FIELDS
        case "result":
            from rwq_cli.views.results import RESULT_FIELDS

            return RESULT_FIELDS
        case "wait":
            from rwq_cli.views.waiting import WAIT_FIELDS

            return WAIT_FIELDS
        case "doctor":
            from rwq_cli.views.doctor import FINDING_FIELDS

            return FINDING_FIELDS
        case "check":
            from rwq_cli.views.monitoring import CHECK_FIELDS

            return CHECK_FIELDS
        case "undo":
            from rwq_cli.views.undo_files import UNDO_FIELDS

            return UNDO_FIELDS
        case "context list" | "context show":
            from rwq_cli.views.contexts import CONTEXT_FIELDS

            return CONTEXT_FIELDS
        case "context check":
            from rwq_cli.views.contexts import CHECKED_FIELDS

            return CHECKED_FIELDS
        case "local start" | "local stop" | "local status":
            from rwq_cli.views.local_server import LOCAL_FIELDS

            return LOCAL_FIELDS
        case "clean light" | "clean deep":
            from rwq_cli.views.cleaning import CLEAN_FIELDS

            return CLEAN_FIELDS
        case "export":
            from rwq_cli.output.export_file import EXPORT_FIELDS

            return EXPORT_FIELDS
        case "work":
            from rwq_cli.views.working import EVENT_FIELDS

            return EVENT_FIELDS
        case name if name in _STREAMS:
            from rwq_cli.views.outcomes import OUTCOME_FIELDS

            return OUTCOME_FIELDS
    return None
