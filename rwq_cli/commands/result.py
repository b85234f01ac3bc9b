"""`rwq result`: what was kept of an item when it was completed."""

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.result_options import Verdict
from rwq_cli.core.items.results import ResultLook
from rwq_cli.core.model import State
from rwq_cli.core.queue import FOREVER
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Detail, Report, Section, View

app = CommandModule()


@app.command(
    help="Show the outcome that complete kept of an item. With --wait, as soon as the item is "
    "gone; if no outcome is there then, that is the answer.",
    examples=(
        "rwq result -q jobs 4f2a9c",
        "rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json",
        "rwq result -q jobs 4f2a9c -o json",
    ),
    exits={
        ExitStatus.OK: "there is a result; whether it says completed or rejected is in it",
        ExitStatus.NO: "there is none: the item still exists, or is gone without one",
    },
)
def result(
    settings: Settings,
    item_id: Annotated[str, typer.Argument(metavar="ID", help="The item's ID.")],
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Wait while the item exists, whatever its state; what falls due is promoted.",
        ),
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DUR", help="Wait for so long at most."),
    ] = None,
) -> Report:
    if not item_id:
        raise InvalidArgument("an ID is empty", "an unset variable in the script?")
    if item_id == "-":
        raise InvalidArgument(
            "one ID is wanted, and - means those on stdin",
            "for many: rwq show - says of each which result is kept",
        )
    timeout_s = FOREVER if timeout is None else parse_duration(timeout)
    queue = open_queue(settings)

    def looks() -> Iterator[ResultLook]:
        look = queue.result(
            os.fsencode(item_id), wait=wait or timeout is not None, timeout_s=timeout_s
        )
        if note := _note(look, settings.output):
            settings.environment.note(note)
        yield look

    return Detail(
        view=View((), _fields, _id, _NOTHING, _bytes),
        records=looks(),
        sections=_sections,
        one_only=True,
        is_missing=lambda look: look.result is None,
        missing=_missing,
    )


# Of a result to people; a screen of some megabytes would take minutes to lay out.
_SHOWN_BYTES = 16 * 1024
_NOTHING = ResultLook(b"", b"", State.GONE, None)


def _note(look: ResultLook, output: OutputFormat) -> str | None:
    """What the output itself does not say."""
    if look.result is None:
        return None
    shown = escaped(look.item_id)
    if look.state is not State.GONE:
        return (
            f"note: {shown} was added again since, and is {look.state.value} now; this is the "
            "result of the earlier item"
        )
    if look.result.verdict is Verdict.REJECTED and output in (OutputFormat.DATA, OutputFormat.IDS):
        return f"note: {shown} was rejected"
    return None


def _id(look: ResultLook) -> bytes | None:
    return None if look.result is None else look.item_id


def _bytes(look: ResultLook) -> bytes | None:
    return None if look.result is None else look.result.result


def _missing(look: ResultLook) -> str:
    shown = escaped(look.item_id)
    if look.state is State.GONE:
        return f"no result of {shown}: there is no such item, and nothing is kept of one"
    still = "still " if look.waited_out else ""
    return f"no result of {shown}: it is {still}{look.state.value}"


def _fields(look: ResultLook) -> dict[str, Any]:
    kept = look.result
    return {
        **bytes_fields("queue", look.queue),
        **bytes_fields("id", look.item_id),
        "state": look.state.value,
        "status": None if kept is None else kept.verdict.value,
        **bytes_fields("result", None if kept is None else kept.result),
        "bytes": None if kept is None else kept.result_bytes,
        "completed_ms": None if kept is None else kept.completed_ms,
        "holder": None if kept is None or kept.holder is None else escaped(kept.holder),
        "ttl_ms": None if kept is None else kept.ttl_ms,
    }


def _sections(look: ResultLook) -> list[Section]:
    kept = look.result
    if kept is None:
        rows = [("queue", escaped(look.queue), None), ("result", _missing(look), "red")]
        return [Section(escaped(look.item_id), rows)]
    rows = [
        ("queue", escaped(look.queue), None),
        ("status", kept.verdict.value, "green" if kept.verdict is Verdict.COMPLETED else "red"),
        ("when", human.moment(kept.completed_ms), None),
        ("held by", "nobody" if kept.holder is None else escaped(kept.holder), None),
        ("size", "no result given" if kept.result is None else human.size(len(kept.result)), None),
        (
            "kept for",
            "ever: it has no expiry" if kept.ttl_ms is None else human.duration(kept.ttl_ms / 1000),
            None,
        ),
    ]
    sections = [Section(escaped(look.item_id), rows)]
    if kept.result:
        sections.append(Section("Result", [("", _told(kept.result), None)]))
    return sections


def _told(result: bytes) -> str:
    """Its lines, escaped; the first of them where there is more than a screen can show."""
    lines = [escaped(line) for line in result[:_SHOWN_BYTES].split(b"\n")]
    if len(result) > _SHOWN_BYTES:
        lines.append(f"… the first {human.size(_SHOWN_BYTES)}; -o data gives all of it")
    return "\n".join(lines)
