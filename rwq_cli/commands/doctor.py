"""`rwq doctor`: find what is wrong with a queue, and repair what it can automatically."""

from functools import cache
from typing import Annotated

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import command_lines, naming
from rwq_cli.cli.open_queues import open_matching_queues
from rwq_cli.cli.options import DEFAULT_GRACE, NULL_IDS, AllQueuesOption, GraceOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.doctor import Diagnosis, diagnose as diagnose_queue
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import Records, Report
from rwq_cli.views.doctor import doctor_report

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
    describes=True,
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
) -> Report:
    if dry_run and not fix:
        raise InvalidArgument("--dry-run needs --fix", "without --fix, doctor changes nothing")
    codes = (frozenset(Code) if only is None else only) - (skip or frozenset())
    if not codes:
        raise InvalidArgument(
            "--only and --skip leave no findings", f"known findings: {', '.join(Code)}"
        )
    opened = open_matching_queues(settings, all_queues=all_queues, changes=fix)
    all_ids = settings.output is OutputFormat.IDS

    def report(queue: WorkQueue) -> Records[Finding]:
        @cache
        def diagnose() -> Diagnosis:
            diagnosis = diagnose_queue(
                queue, codes=codes, fix=fix, grace_s=grace_s, dry_run=dry_run, all_ids=all_ids
            )
            (diagnosis,) = noting_absence(
                settings, queue, [diagnosis], lambda each: each.items == 0
            )
            return diagnosis

        return doctor_report(
            queue.name,
            diagnose,
            fix=fix,
            dry_run=dry_run,
            explains_notes=settings.verbose or not settings.is_for_people,
            has_notes=not (settings.quiet and settings.is_for_people),
            summary_end=naming(settings, queue, is_prefixed=not opened.is_one).summary_end,
            has_queue=not opened.is_one,
            is_all=all(c in codes for c in Code if c.severity is not Severity.NOTE),
            lines=command_lines(settings, queue.connection),
        )

    return opened.reports(report)
