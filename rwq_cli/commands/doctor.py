"""`rwq doctor`: find what is wrong with a queue, and repair what it can automatically."""

from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import command_lines, summary_end
from rwq_cli.cli.open_queues import open_matching_queues, warn_missing
from rwq_cli.cli.options import DEFAULT_GRACE, NULL_IDS, AllQueuesOption, GraceOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.repair.findings import Code, Severity
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.doctor import (
    FINDING_FIELDS,
    PLAIN,
    Found,
    finding_section,
    healthy_line,
    summary,
    table_columns,
)

app = CommandModule()


def _codes(text: str) -> frozenset[Code]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in set(Code):
            raise InvalidArgument(
                f"no such finding: {name!r}", f"known findings: {', '.join(Code)}"
            )
    return frozenset(map(Code, names))


@app.command(
    record=FINDING_FIELDS,
    help="Find what is wrong with a queue; --fix repairs what can be repaired automatically. "
    "-v also explains the notes.",
    examples=(
        "rwq doctor -q jobs",
        "rwq doctor -q jobs --fix --dry-run",
        "rwq doctor -q jobs --fix --skip duplicated,due",
        "rwq doctor -q jobs -o ids --only held -0 | rwq release -q jobs --force -0 -",
    ),
    exits={
        ExitStatus.OK: "there are no errors or warnings, or none are left; notes do not count",
        ExitStatus.NO: "errors or warnings were found, or are left after --fix",
    },
    changes_with="fix",
    null=NULL_IDS,
    always_table=True,
)
def doctor(
    settings: Settings,
    fix: Annotated[
        bool,
        option("--fix", "Repair what can be repaired automatically; safe while workers run."),
    ] = False,
    dry_run: Annotated[
        bool, option("--dry-run", "With --fix: report what would be done, but change nothing.")
    ] = False,
    grace_s: GraceOption = DEFAULT_GRACE,
    only: Annotated[
        frozenset[Code] | None, option("--only CODE,...", "Only these findings.", _codes)
    ] = None,
    skip: Annotated[
        frozenset[Code] | None, option("--skip CODE,...", "All findings except these.", _codes)
    ] = None,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    if dry_run and not fix:
        raise InvalidArgument("--dry-run needs --fix", "without --fix, doctor changes nothing")
    codes = (frozenset(Code) if only is None else only) - (skip or frozenset())
    if not codes:
        raise InvalidArgument(
            "--only and --skip leave no findings", f"known findings: {', '.join(Code)}"
        )
    opened = open_matching_queues(settings, all_queues=all_queues, changes=fix)
    out, is_one = settings.out, opened.is_one
    out.continues = not is_one
    is_table = settings.output.is_table and settings.fields is None
    is_all = all(code in codes for code in Code if code.severity is not Severity.NOTE)
    explains_notes = settings.verbose or not settings.is_for_people
    status = ExitStatus.OK
    settings.environment.interrupted = "some of it may be fixed"
    for number, queue in enumerate(opened.queues):
        diagnosis = diagnose(
            queue,
            codes=codes,
            fix=fix,
            grace_s=grace_s,
            dry_run=dry_run,
            all_ids=settings.output is OutputFormat.IDS,
        )
        if diagnosis.items == 0:
            warn_missing(settings, queue)
        if not diagnosis.is_healthy:
            status = ExitStatus.NO
        serious = [each for each in diagnosis.findings if each.code.severity is not Severity.NOTE]
        is_news = serious or any(each.fixed for each in diagnosis.findings)
        if is_table and not is_news and not (settings.verbose and diagnosis.findings):
            if not settings.quiet:
                end = summary_end(settings, queue, is_prefixed=True)
                out.text(f"{healthy_line(diagnosis, is_all=is_all)}{end}\n")
            continue
        shows_notes = not (settings.quiet and settings.is_for_people)
        lines = command_lines(settings, queue.connection)
        found = [
            Found(queue.name, finding, fix, dry_run, lines)
            for finding in (diagnosis.findings if shows_notes else serious)
        ]
        name = escaped(queue.name)
        if is_table:
            if not is_one:
                out.heading(name, is_first=not number)
            columns = table_columns(fix=fix, dry_run=dry_run)
            out.table(found, FINDING_FIELDS, columns, wide=columns)
            explained = [
                each
                for each in found
                if each.finding.left and (explains_notes or each.severity is not Severity.NOTE)
            ]
            out.sections(map(finding_section, explained), is_first=False)
        else:
            out.table(
                found,
                FINDING_FIELDS,
                PLAIN if is_one else (*PLAIN, "queue"),
                id_batches=(each.finding.examples for each in found if not each.finding.of_keys),
            )
        line = summary(diagnosis, fix=fix, explains_notes=explains_notes)
        line += summary_end(settings, queue, is_prefixed=not is_one)
        out.note(line if is_one else f"{name}: {line}")
    if not is_one:
        out.end()
    return status
