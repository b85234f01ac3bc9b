"""`rwq help`: the help of a command, or a topic."""

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.help_subjects import SubjectArgument, find_subject, root_context
from rwq_cli.cli.settings import Settings
from rwq_cli.help.screen import write_page
from rwq_cli.help.topics import Topic, topic_page
from rwq_cli.output.report import Report, Text

app = CommandModule()


@app.command(
    help="Show the help of a command, or a topic.",
    examples=("rwq help ls", "rwq help clean light", "rwq help recipes"),
    reads_only=True,
)
def show_help(
    settings: Settings,  # noqa: ARG001
    words: SubjectArgument = None,
) -> Report:
    subject = find_subject("help", words or ())
    if not isinstance(subject, Topic):
        return Text(f"{subject.get_help()}\n")
    formatter = root_context().make_formatter()
    write_page(topic_page(subject), formatter)
    return Text(formatter.getvalue())
