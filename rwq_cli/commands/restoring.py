"""What the commands that restore items share: import and undo."""

from collections.abc import Callable

from rwq_cli.cli.outcomes import bad_record_reporter
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.results import ResultTally
from rwq_cli.core.model import Outcome, Status
from rwq_cli.output.outcomes import Kind
from rwq_cli.views.outcomes import kind_of

# Counted under the names of other statuses than their own.
_NAMES = {Status.CONFLICT: "conflicts", Status.WRONG_TYPE: "rejected"}


def restoring_kind(counted: tuple[str, ...], restored: dict[Status, str]) -> Kind[Outcome]:
    """How the outcomes of restoring are counted.

    Args:
        counted: The words that JSON always has, in order; the first is what the command is for.
        restored: What items are counted as that were restored, by their status.
    """
    return kind_of(Status.IMPORTED, ())._replace(
        counted=counted,
        names={str(status): name for status, name in (_NAMES | restored).items()},
        failed=frozenset(
            {"conflicts", "rejected", "missing", "changed", "not-owner", "results-rejected"}
        ),
        shown=frozenset(map(str, (Status.IMPORTED, Status.REPLACED, Status.MOVED, Status.SET))),
        successes=frozenset({"results", "results-already-there"}),
    )


def results_restored(results: ResultTally) -> dict[str, int]:
    """The numbers of restored results, for the summary."""
    return {
        "results": results.restored,
        "results-already-there": results.already_there,
        "results-rejected": results.wrong_type,
    }


def bad_line(number: int, reason: str) -> str:
    """An unusable line and the reason, for the failures in JSON."""
    return f"line {number}: {reason}"


def bad_line_reporter(settings: Settings, name: str) -> Callable[[int, str], None]:
    """A function that reports an unusable line of a file."""
    place = "line" if name == "-" else f"{name}, line"
    report = bad_record_reporter(settings, "not imported")
    return lambda number, reason: report(place, number, reason)
