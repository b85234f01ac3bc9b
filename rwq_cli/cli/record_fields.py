"""The fields of each command's records, for the reference, `--fields` and `--sort`."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from rwq_cli.output.fields import check_format, check_order, field_names, in_order, with_fields
from rwq_cli.output.options import OutputOptions
from rwq_cli.output.report import View

# The commands that write their records as they come, in no other order.
_STREAMS = frozenset(
    {
        *("add", "complete", "touch", "release", "bury", "kick", "edit", "set", "rm", "mv"),
        *("purge", "import", "clean light", "clean deep", "export", "work"),
    }
)


class Fields(NamedTuple):
    """The fields of a command's records.

    Attributes:
        names: Their names.
        can_sort: Whether the command takes `--sort`.
    """

    names: tuple[str, ...] = ()
    can_sort: bool = False


NO_FIELDS = Fields()


def fields_of(path: tuple[str, ...]) -> Fields:
    """The fields of a command; none for one without records."""
    view = view_of(path)
    if view is None:
        return NO_FIELDS
    return Fields(tuple(field_names(view)), can_sort=" ".join(path) not in _STREAMS)


def check_options(
    path: tuple[str, ...], given: Mapping[str, object], options: OutputOptions
) -> None:
    """Raise `InvalidArgument` for a format, a field or an order that a command does not have.

    Args:
        path: The command's name, after that of its group.
        given: Its own options.
        options: The output options.
    """
    view, is_stream = view_of(path), " ".join(path) in _STREAMS
    if path == ("undo",) and not given["list_"]:
        view, is_stream = view_of(("purge",)), True
        if given["prune"]:
            from rwq_cli.views.undo_files import pruned_view

            view = pruned_view()
    elif path == ("work",) and given["dry_run"]:
        from rwq_cli.views.working import plan_view

        view, is_stream = plan_view(), False
    elif path in (("context", "set"), ("context", "use"), ("context", "rm")):
        view = view_of(("context", "list"))
    if view is None:
        return
    if is_stream:
        check_order(options)
    else:
        check_format(view, options)
        in_order(view, (), options)
    if options.fields is not None:
        with_fields(view, options.fields)


@cache
def view_of(path: tuple[str, ...]) -> View[Any] | None:
    """The view of a command's records; None for one without."""
    match " ".join(path):
        case "ls" | "leases" | "lease":
            from rwq_cli.views.items import item_view

            return item_view(())
        case "queues":
            from rwq_cli.views.counts import queues_view

            return queues_view()
        case "show":
            from rwq_cli.views.item_report import show_report

            return show_report((), one=True).view
        case "stats":
            from rwq_cli.views.counts import stats_report

            return stats_report((), fast=False, deep=False, one=True).view
        case "result":
            from rwq_cli.views.results import result_report

            return result_report((), lambda: 0).view
        case "wait":
            from rwq_cli.views.waiting import wait_report

            return wait_report((), one=True).view
        case "doctor":
            from rwq_cli.core.repair.doctor import Diagnosis
            from rwq_cli.views.command_lines import CommandLines
            from rwq_cli.views.doctor import doctor_report

            return doctor_report(
                b"",
                lambda: Diagnosis(b"", (), None, dry_run=False),
                fix=False,
                dry_run=False,
                explains_notes=False,
                has_notes=True,
                lines=CommandLines(),
                summary_end=str,
            ).view
        case "check":
            from rwq_cli.core.inspect.thresholds import Level
            from rwq_cli.views.monitoring import check_report

            return check_report((), "", Level.OK, one=True).view
        case "undo":
            from pathlib import Path

            from rwq_cli.views.undo_files import undo_files_report

            return undo_files_report((), Path()).view
        case "context list" | "context show":
            from rwq_cli.views.contexts import context_list

            return context_list((), None, note=None).view
        case "context check":
            from rwq_cli.views.contexts import checked_report

            return checked_report(()).view
        case "local start" | "local stop" | "local status":
            from pathlib import Path

            from rwq_cli.local import LocalStatus
            from rwq_cli.views.local_server import local_report

            stopped = LocalStatus(False, None, "", Path(), None, None, 0, None)
            return local_report(stopped, answer_is_no=False).view
        case "clean light" | "clean deep":
            from rwq_cli.views.cleaning import clean_report

            return clean_report(b"", iter(()), summary_end=str, dry_run=False).view
        case "export":
            from rwq_cli.output.export_file import exported_view

            return exported_view()
        case "work":
            from rwq_cli.views.working import event_view

            return event_view()
        case name if name in _STREAMS:
            from rwq_cli.views.outcomes import outcome_view

            return outcome_view(b"")
    return None
