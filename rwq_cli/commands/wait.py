"""`rwq wait`: until a queue is empty or short enough, or items are gone."""

import os
from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.waiting import WaitCondition, WaitResult
from rwq_cli.core.model import Counts
from rwq_cli.core.queue import FOREVER
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Detail, Report, Section, View

app = CommandModule()


@app.command(
    help="Return when a queue is empty or short enough, or items are gone; for scripts. What falls "
    "due meanwhile is promoted.",
    examples=(
        "rwq wait -q jobs --timeout 1h",
        "rwq wait -q jobs --below 1000",
        "rwq wait -q jobs --id 4f2a9c --timeout 10m",
    ),
    exits={
        ExitStatus.OK: "it is so",
        ExitStatus.NO: "it was not so in time",
    },
)
def wait(
    settings: Settings,
    until_empty: Annotated[
        bool,
        typer.Option(
            "--until-empty",
            help="No item waits, is in processing or is delayed; buried ones do not count. This "
            "is the default.",
        ),
    ] = False,
    below: Annotated[
        int | None,
        typer.Option("--below", metavar="N", min=1, help="Fewer than N items wait."),
    ] = None,
    item_id: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="ID", help="This item is gone; can be given several times, for all."
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DUR", help="Give up after so long. Else never."),
    ] = None,
) -> Report:
    if until_empty + (below is not None) + bool(item_id) > 1:
        raise InvalidArgument(
            "--until-empty, --below and --id exclude each other", "wait for one of them"
        )
    if item_id and "" in item_id:
        raise InvalidArgument("an ID is empty", "an unset variable in the script?")
    condition = WaitCondition(below=below, ids=tuple(map(os.fsencode, item_id or ())))
    timeout_s = FOREVER if timeout is None else parse_duration(timeout)
    queue = open_queue(settings)
    return Detail(
        view=View((), _fields, lambda waited: waited.counts.queue, _NOTHING),
        records=(queue.wait(each, timeout_s=timeout_s) for each in (condition,)),
        sections=_sections,
        one_only=True,
        is_missing=lambda waited: not waited.reached,
        missing=lambda _: "not in time",
    )


_NOTHING = WaitResult(True, Counts(b"", 0, 0, 0, 0), None, 0.0)


def _fields(waited: WaitResult) -> dict[str, Any]:
    counts = waited.counts
    return {
        **bytes_fields("queue", counts.queue),
        "reached": waited.reached,
        "waiting": counts.waiting,
        "processing": counts.processing,
        "delayed": counts.delayed,
        "buried": counts.buried,
        "remaining": waited.remaining,
        "waited_seconds": round(waited.waited_s, 3),
    }


def _sections(waited: WaitResult) -> list[Section]:
    counts = waited.counts
    rows: list[tuple[str, str, str | None]] = [
        ("in time", "yes" if waited.reached else "no", None if waited.reached else "red")
    ]
    if waited.remaining is not None:
        rows.append(("not gone", human.count(waited.remaining), None))
    for name in ("waiting", "processing", "delayed", "buried"):
        rows.append((name, human.count(getattr(counts, name)), None))
    rows.append(("waited", human.duration(waited.waited_s), None))
    return [Section(escaped(counts.queue), rows, numbers=True)]
