"""`rwq export`: everything of a queue, as JSON lines."""

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.selecting import Choice, Reach, choosing
from rwq_cli.connecting import open_queue
from rwq_cli.core.batches import Pause
from rwq_cli.core.exporting import Export
from rwq_cli.core.selecting import ITEMS
from rwq_cli.exits import ExitStatus
from rwq_cli.exportfile import Header, header_line, picture_line, picture_view
from rwq_cli.render import human
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Report, Stream
from rwq_cli.settings import Settings

app = new_app()

MANUALS = {
    "export": Manual(
        examples=(
            "rwq export -q jobs > jobs.jsonl",
            "rwq export -q jobs --state abandoned --match '\"user\": *42' > some.jsonl",
            "rwq export -q jobs | rwq import -q jobs-copy -",
        ),
        exits={
            ExitStatus.NO: "nothing was exported: no such items, or a key of each holds another "
            "type",
            ExitStatus.PARTIAL: "some were left out: no such items, or a key of theirs holds "
            "another type",
        },
        reads_only=True,
    )
}


_REACH = Reach(default=ITEMS, everything=ITEMS, offered=ITEMS, may_be_left_out=True)


@app.command(
    help="Write everything of a queue to stdout, as JSON lines that rwq import reads. Also beside "
    "live workers: each item is as it was at one instant. IDs or options choose some of the items."
)
@choosing(_REACH)
def export(ctx: typer.Context, choice: Choice) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    chosen: frozenset[bytes] | None = None
    if not choice.is_left_out:
        ids = choice.ids(queue, settings)
        chosen = frozenset(item_id for item_id in ids if not isinstance(item_id, Pause))
    run = queue.export(chosen)

    def missing(exported: int) -> int:
        """Those that were named and are nowhere."""
        if chosen is None or not choice.by_name:
            return 0
        return len(chosen) - exported - len(run.left_out.wrong_types)

    def summary(exported: int) -> str:
        for key in run.left_out.wrong_keys:
            settings.environment.note(
                f"rwq: {escaped(key)} holds another type than the protocol says; not exported"
            )
        nowhere = missing(exported)
        said = f", missing {human.count(nowhere)}" if nowhere else ""
        return f"exported {human.count(exported)}{said}{_left_out(run)}"

    def status(exported: int) -> ExitStatus:
        if not (run.left_out.wrong_types or missing(exported)):
            return ExitStatus.OK
        return ExitStatus.PARTIAL if exported else ExitStatus.NO

    return Stream(
        view=picture_view(),
        batches=run.batches(),
        header=header_line(Header(run.queue, run.exported_ms)),
        line=picture_line,
        summary=summary,
        status=status,
        null_separated=choice.null_separated,
    )


def _left_out(run: Export) -> str:
    """What was met and is no item, in words."""
    met = (
        (len(run.left_out.wrong_types), "of a wrong type"),
        (len(run.left_out.missing), "without data"),
        (run.left_out.stray_leases, "stray leases"),
    )
    said = [f"{human.count(number)} {what}" for number, what in met if number]
    return f"; left out {', '.join(said)}" if said else ""
