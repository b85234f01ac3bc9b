"""The fields of each command's records, for the reference, `--fields` and `--sort`."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rwq_cli.core.inspect.thresholds import Level
from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.local import LocalStatus
from rwq_cli.output.export_file import exported_view
from rwq_cli.output.fields import field_names
from rwq_cli.output.report import Records, View
from rwq_cli.views.cleaning import clean_report
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.contexts import checked_report, context_list
from rwq_cli.views.counts import queues_view, stats_report
from rwq_cli.views.doctor import doctor_report
from rwq_cli.views.item_report import show_report
from rwq_cli.views.items import item_view
from rwq_cli.views.local_server import local_report
from rwq_cli.views.monitoring import check_report
from rwq_cli.views.outcomes import outcome_view
from rwq_cli.views.results import result_report
from rwq_cli.views.undo_files import undo_files_report
from rwq_cli.views.waiting import wait_report
from rwq_cli.views.working import event_view


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
    return Fields(tuple(field_names(view)), can_sort=" ".join(path) in _listings())


def view_of(path: tuple[str, ...]) -> View[Any] | None:
    """The view of a command's records; None for one without."""
    name = " ".join(path)
    return _listings().get(name) or _streams().get(name)


@cache
def _listings() -> dict[str, View[Any]]:
    reports: dict[str, Records[Any]] = {
        "show": show_report((), one=True),
        "stats": stats_report((), fast=False, deep=False, one=True),
        "result": result_report((), lambda: 0),
        "wait": wait_report((), one=True),
        "doctor": doctor_report(
            b"",
            lambda: Diagnosis(b"", (), None, dry_run=False),
            fix=False,
            dry_run=False,
            explains_notes=False,
            has_notes=True,
            lines=CommandLines(),
            summary_end=str,
        ),
        "check": check_report((), "", Level.OK, one=True),
        "undo": undo_files_report((), Path()),
        "context list": context_list((), None, note=None),
        "context show": context_list((), None, note=None),
        "context check": checked_report(()),
    }
    items = dict.fromkeys(("ls", "leases", "lease"), item_view(()))
    stopped = LocalStatus(False, None, "", Path(), None, None, 0, None)
    reports |= dict.fromkeys(
        ("local start", "local stop", "local status"), local_report(stopped, answer_is_no=False)
    )
    return {**items, "queues": queues_view(), **{name: r.view for name, r in reports.items()}}


@cache
def _streams() -> dict[str, View[Any]]:
    """The records that commands write as they come, in no other order."""
    verbs = ("add", "complete", "touch", "release", "bury", "kick", "rm", "mv", "purge", "import")
    cleaned = clean_report(b"", iter(()), summary_end=str, dry_run=False).view
    return {
        **dict.fromkeys((*verbs, "set", "edit"), outcome_view(b"")),
        **dict.fromkeys(("clean light", "clean deep"), cleaned),
        "export": exported_view(),
        "work": event_view(),
    }
