"""`rwq doctor`: everything that is wrong with a queue, and the cure of what needs no decision."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import NullIdsOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import COMMAND_STYLE, Column, Listing, Report, Section, View
from rwq_cli.views.outcomes import DRY_RUN
from rwq_cli.views.remedies import REMEDIES, command_for, kept_because

app = CommandModule()

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}
_NOTHING = Finding(Code.GHOST, 0, (), False, 0, 0)


@app.command(
    help="Find everything that is wrong with a queue, and with --fix cure what can be.",
    examples=(
        "rwq doctor -q jobs",
        "rwq doctor -q jobs --fix --dry-run",
        "rwq doctor -q jobs --fix --skip duplicated,due",
        "rwq doctor -q jobs -o ids --only held -0 | rwq release -q jobs --force -0 -",
    ),
    exits={
        ExitStatus.OK: "nothing is left that a queue should not have; notes may be",
        ExitStatus.NO: "errors or warnings were found, or are left after --fix",
    },
)
def doctor(
    settings: Settings,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Cure what needs no decision; safe beside workers."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --fix: say what it would do, change nothing.")
    ] = False,
    grace: Annotated[
        str,
        typer.Option(
            "--grace",
            metavar="DUR",
            help="How long something must look broken; longer than any worker takes from its pop "
            "to its lease.",
        ),
    ] = "1s",
    only: Annotated[
        str | None, typer.Option("--only", metavar="CODE,...", help="Look for these alone.")
    ] = None,
    skip: Annotated[
        str | None, typer.Option("--skip", metavar="CODE,...", help="Do not look for these.")
    ] = None,
    null: NullIdsOption = False,
) -> Report:
    if dry_run and not fix:
        raise InvalidArgument(
            "--dry-run is about what --fix would do", "without --fix nothing is changed anyway"
        )
    codes = (_codes(only) if only is not None else frozenset(Code)) - _codes(skip or "")
    grace_s = parse_duration(grace)
    queue = open_queue(settings)
    found: list[Diagnosis] = []

    def diagnosed() -> Diagnosis:
        if not found:
            found.append(
                queue.diagnose(
                    codes=codes,
                    fix=fix,
                    grace_s=grace_s,
                    dry_run=dry_run,
                    all_ids=settings.output is OutputFormat.IDS,
                )
            )
        return found[0]

    def records() -> Iterator[Finding]:
        yield from diagnosed().findings

    def ids() -> Iterator[Sequence[bytes]]:
        for finding in diagnosed().findings:
            if not finding.of_keys:
                yield finding.examples

    return Listing(
        view=_view(queue.name, fix=fix, dry_run=dry_run),
        records=records(),
        empty=f"Nothing is wrong with {escaped(queue.name)}.",
        sections=lambda finding: [_section(queue.name, finding, fix=fix)],
        id_batches=ids(),
        null_separated=null,
        closing=lambda: _summary(diagnosed(), fix=fix),
        status=lambda: ExitStatus.OK if diagnosed().is_healthy else ExitStatus.NO,
    )


def _codes(text: str) -> frozenset[Code]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return frozenset(Code(name) for name in names)
    except ValueError:
        known = {code.value for code in Code}
        wrong = next(name for name in names if name not in known)
        raise InvalidArgument(f"no such finding: {wrong!r}", f"they are {', '.join(Code)}")


def _view(queue: bytes, *, fix: bool, dry_run: bool) -> View[Finding]:
    def fields(finding: Finding) -> dict[str, Any]:
        remedy = REMEDIES[finding.code]
        return {
            **bytes_fields("queue", queue),
            "code": finding.code.value,
            "severity": finding.code.severity.value,
            "count": finding.count,
            "fixed": finding.fixed,
            "left": finding.left,
            "examples": [escaped(example) for example in finding.examples],
            "examples_b64": [b64encode(example).decode() for example in finding.examples],
            "examples_are": "keys" if finding.of_keys else "ids",
            "cause": remedy.cause,
            "cure": remedy.cure,
            "command": command_for(queue, finding),
            "left_because": kept_because(finding) if fix else None,
            "dry_run": dry_run,
        }

    columns: tuple[Column[Finding], ...] = (
        Column("CODE", lambda f: f.code.value, lambda f: f.code.value),
        Column("SEVERITY", lambda f: f.code.severity.value, lambda f: f.code.severity.value),
        Column("COUNT", lambda f: human.count(f.count), lambda f: f.count, right=True),
        Column("FIXED", lambda f: human.count(f.fixed), lambda f: f.fixed, right=True),
        Column("LEFT", lambda f: human.count(f.left), lambda f: f.left, right=True),
        Column("EXAMPLES", _examples, _examples),
        Column("COMMAND", lambda f: command_for(queue, f), lambda f: command_for(queue, f)),
    )
    return View(columns, fields, lambda _finding: None, _NOTHING)


def _examples(finding: Finding) -> str:
    return " ".join(map(escaped, finding.examples))


def _section(queue: bytes, finding: Finding, *, fix: bool) -> Section:
    remedy, severity = REMEDIES[finding.code], finding.code.severity
    counted = human.count(finding.count)
    if fix:
        counted += f", {human.count(finding.fixed)} fixed, {human.count(finding.left)} left"
    rows: list[tuple[str, str, str | None]] = [
        (severity.value, counted, _STYLES[severity]),
        ("cause", remedy.cause, None),
        ("cure", remedy.cure, None),
    ]
    if fix and (because := kept_because(finding)):
        rows.append(("left because", because, None))
    if finding.left:
        rows.append(("command", command_for(queue, finding), COMMAND_STYLE))
    for number, example in enumerate(finding.examples):
        rows.append(("" if number else "for example", escaped(example) or "(empty)", None))
    return Section(finding.code.value, rows)


def _summary(diagnosis: Diagnosis, *, fix: bool) -> str:
    numbers = {
        severity: sum(finding.code.severity is severity for finding in diagnosis.findings)
        for severity in Severity
    }
    said = ", ".join(f"{severity.value}s {number}" for severity, number in numbers.items())
    if diagnosis.items is None:
        said += "; the items were not looked at"
    else:
        said += f"; items {human.count(diagnosis.items)}"
    if fix:
        fixed = sum(finding.fixed for finding in diagnosis.findings)
        left = sum(
            finding.left
            for finding in diagnosis.findings
            if finding.code.severity is not Severity.NOTE
        )
        said += f"; fixed {human.count(fixed)}, left {human.count(left)}"
    return (DRY_RUN if diagnosis.dry_run else "") + said
