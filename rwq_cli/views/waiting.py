"""The result of waiting for a queue or for items."""

from collections.abc import Iterable, Iterator
from typing import Any

from rwq_cli.core.items.waiting import WaitResult
from rwq_cli.core.model import Counts
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import Records, Row, Section, View

_LENGTHS = ("waiting", "processing", "delayed", "buried")


def wait_report(results: Iterable[WaitResult], *, one: bool) -> Records[WaitResult]:
    """The report of `rwq wait`, for one queue or several. Reading the results waits."""
    missed: list[WaitResult] = []

    def read() -> Iterator[WaitResult]:
        for waited in results:
            if not waited.reached:
                missed.append(waited)
            yield waited

    def note(waited: WaitResult, output: OutputFormat) -> str | None:
        return "timed out" if output.is_bare and not waited.reached else None

    return Records(
        view=View(
            _fields,
            lambda waited: waited.counts.queue,
            WaitResult(True, Counts(b"", 0, 0, 0, 0), None, 0.0, True),
            sections=_sections,
        ),
        records=read(),
        is_one=one,
        note=note,
        status=lambda: ExitStatus.NO if missed else ExitStatus.OK,
    )


def _fields(waited: WaitResult) -> dict[str, Any]:
    return {
        **bytes_fields("queue", waited.counts.queue),
        "reached": waited.reached,
        **{name: getattr(waited.counts, name) for name in _LENGTHS},
        "remaining": waited.remaining,
        "waited_seconds": round(waited.waited_s, 3),
    }


def _sections(waited: WaitResult) -> list[Section]:
    in_time: Row = ("in time", "yes", None) if waited.reached else ("in time", "no", "red")
    rows = [in_time]
    if waited.remaining is not None:
        rows.append(("not gone", human.count(waited.remaining), None))
    rows += [(name, human.count(getattr(waited.counts, name)), None) for name in _LENGTHS]
    rows.append(("waited", human.duration(waited.waited_s), None))
    return [Section(escaped(waited.counts.queue), rows, numbers=True)]
