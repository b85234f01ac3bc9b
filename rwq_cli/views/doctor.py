"""The findings of the doctor, each with its cause and its cure."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import COMMAND_STYLE, DRY_RUN, Column, Records, Row, Section, View
from rwq_cli.views.remedies import REMEDIES, command_for, left_because

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


def doctor_report(
    queue: bytes, diagnose: Callable[[], Diagnosis], *, fix: bool, dry_run: bool
) -> Records[Finding]:
    """The report of `rwq doctor`. `diagnose` looks at the queue, and is called once."""

    def findings() -> Iterator[Finding]:
        yield from diagnose().findings

    def ids() -> Iterator[Sequence[bytes]]:
        return (finding.examples for finding in findings() if not finding.of_keys)

    return Records(
        view=_view(queue, fix=fix, dry_run=dry_run),
        records=findings(),
        describes=True,
        empty=f"Nothing is wrong with {escaped(queue)}.",
        id_batches=ids(),
        closing=lambda: _summary(diagnose(), fix=fix),
        status=lambda: ExitStatus.OK if diagnose().is_healthy else ExitStatus.NO,
    )


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
            "left_because": left_because(finding) if fix else None,
            "dry_run": dry_run,
        }

    # For `-o plain`; people see the sections.
    columns: tuple[Column[Finding], ...] = (
        Column("CODE", lambda finding: finding.code.value),
        Column("SEVERITY", lambda finding: finding.code.severity.value),
        Column("COUNT", lambda finding: finding.count),
        Column("FIXED", lambda finding: finding.fixed),
        Column("LEFT", lambda finding: finding.left),
        Column("EXAMPLES", lambda finding: " ".join(map(escaped, finding.examples))),
        Column("COMMAND", lambda finding: command_for(queue, finding)),
    )
    return View(
        fields,
        lambda _finding: None,
        Finding(Code.GHOST, 0, (), False, 0, 0),
        columns,
        lambda finding: [_section(queue, finding, fix=fix)],
    )


def _section(queue: bytes, finding: Finding, *, fix: bool) -> Section:
    remedy, severity = REMEDIES[finding.code], finding.code.severity
    count = human.count(finding.count)
    if fix:
        count += f", {human.count(finding.fixed)} fixed, {human.count(finding.left)} left"
    rows: list[Row] = [
        (severity.value, count, _STYLES[severity]),
        ("cause", remedy.cause, None),
        ("cure", remedy.cure, None),
    ]
    if fix and (because := left_because(finding)):
        rows.append(("left because", because, None))
    if finding.left:
        rows.append(("command", command_for(queue, finding), COMMAND_STYLE))
    for number, example in enumerate(finding.examples):
        rows.append(("" if number else "for example", escaped(example) or "(empty)", None))
    return Section(finding.code.value, rows)


def _summary(diagnosis: Diagnosis, *, fix: bool) -> str:
    """The one line about all findings."""
    findings = diagnosis.findings
    numbers = {
        severity: sum(finding.code.severity is severity for finding in findings)
        for severity in Severity
    }
    text = ", ".join(f"{severity.value}s {number}" for severity, number in numbers.items())
    if diagnosis.items is None:
        text += "; the items were not checked"
    else:
        text += f"; items {human.count(diagnosis.items)}"
    if fix:
        left = sum(
            finding.left for finding in findings if finding.code.severity is not Severity.NOTE
        )
        fixed = sum(finding.fixed for finding in findings)
        text += f"; fixed {human.count(fixed)}, left {human.count(left)}"
    return (DRY_RUN if diagnosis.dry_run else "") + text
