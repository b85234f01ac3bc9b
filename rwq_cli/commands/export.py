"""`rwq export`: everything of a queue, as JSON lines."""

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.options import NullRecordsOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.exporting import Export
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
            "rwq export -q jobs | rwq import -q jobs-copy -",
        ),
        exits={
            ExitStatus.NO: "the data or lease key of every item holds another type: nothing was "
            "exported",
            ExitStatus.PARTIAL: "the data or lease key of some items holds another type: they were "
            "left out",
        },
        reads_only=True,
    )
}


@app.command(
    help="Write everything of a queue to stdout, as JSON lines that rwq import reads. Also beside "
    "live workers: each item is as it was at one instant."
)
def export(ctx: typer.Context, null: NullRecordsOption = False) -> Report:
    settings: Settings = ctx.obj
    queue = open_queue(settings)
    run = queue.export()

    def summary(exported: int) -> str:
        for key in run.left_out.wrong_keys:
            settings.environment.note(
                f"rwq: {escaped(key)} holds another type than the protocol says; not exported"
            )
        return f"exported {human.count(exported)}{_left_out(run)}"

    def status(exported: int) -> ExitStatus:
        if not run.left_out.wrong_types:
            return ExitStatus.OK
        return ExitStatus.PARTIAL if exported else ExitStatus.NO

    return Stream(
        view=picture_view(),
        batches=run.batches(),
        header=header_line(Header(run.queue, run.exported_ms)),
        line=picture_line,
        summary=summary,
        status=status,
        null_separated=null,
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
