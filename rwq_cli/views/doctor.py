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
from rwq_cli.output.report import COMMAND_STYLE, DRY_RUN, Column, Cut, Records, Row, Section, View
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.remedies import REMEDIES, command_for, left_because

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


def doctor_report(
    queue: bytes,
    diagnose: Callable[[], Diagnosis],
    *,
    fix: bool,
    dry_run: bool,
    explains_notes: bool,
    has_notes: bool,
    lines: CommandLines,
    summary_end: Callable[[], str],
    has_queue: bool = False,
    is_all: bool = True,
) -> Records[Finding]:
    """The report of `rwq doctor`.

    Args:
        queue: The queue's name.
        diagnose: Looks at the queue.
        fix: Whether it fixes what it can.
        dry_run: Whether it is a dry run.
        explains_notes: Whether people see what notes mean, too.
        has_notes: Whether there are notes at all.
        lines: Makes the command lines.
        summary_end: See `Naming`.
        has_queue: Whether lines of `-o plain` name the queue.
        is_all: Whether all errors and warnings were looked for.
    """

    def findings() -> Iterator[Finding]:
        for finding in diagnose().findings:
            if has_notes or finding.code.severity is not Severity.NOTE:
                yield finding

    def ids() -> Iterator[Sequence[bytes]]:
        return (finding.examples for finding in findings() if not finding.of_keys)

    view = _view(queue, lines, fix=fix, dry_run=dry_run, explains_notes=explains_notes)
    if has_queue:
        column: Column[Finding] = Column("QUEUE", lambda _finding: queue)
        view = view._replace(plain_columns=[*(view.plain_columns or view.columns), column])
    return Records(
        view=view,
        records=findings(),
        empty=lambda: (
            f"Nothing is wrong with {escaped(queue)}."
            if is_all
            else f"{escaped(queue)} has none of these findings."
        ),
        id_batches=ids(),
        closing=lambda: (
            _summary(diagnose(), fix=fix, explains_notes=explains_notes) + summary_end()
        ),
        status=lambda: ExitStatus.OK if diagnose().is_healthy else ExitStatus.NO,
    )


def _view(
    queue: bytes, lines: CommandLines, *, fix: bool, dry_run: bool, explains_notes: bool
) -> View[Finding]:
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
            "command": command_for(lines, queue, finding),
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
        Column("COMMAND", lambda finding: command_for(lines, queue, finding)),
    )

    def sections(finding: Finding) -> list[Section]:
        is_explained = explains_notes or finding.code.severity is not Severity.NOTE
        return [_section(queue, lines, finding, fix=fix)] if finding.left and is_explained else []

    return View(
        fields,
        None,
        Finding(Code.GHOST, 0, (), False, 0, 0),
        columns,
        sections,
        overview=_overview(fix=fix, dry_run=dry_run),
    )


def _overview(*, fix: bool, dry_run: bool) -> list[Column[Finding]]:
    columns: list[Column[Finding]] = [
        Column(
            "SEVERITY",
            lambda finding: finding.code.severity.value,
            style=lambda finding: _STYLES[finding.code.severity] if finding.left else None,
        ),
        Column("FINDING", lambda finding: finding.code.value, cut=Cut.MIDDLE),
        Column("COUNT", lambda finding: finding.count, _counter("count"), right=True),
    ]
    if fix:
        fixed = "WOULD FIX" if dry_run else "FIXED"
        columns.append(
            Column(fixed, lambda finding: finding.fixed, _counter("fixed"), right=True, rank=1)
        )
        columns.append(Column("LEFT", lambda finding: finding.left, _counter("left"), right=True))
    return columns


def _counter(name: str) -> Callable[[Finding], str]:
    return lambda finding: human.count(getattr(finding, name))


def _section(queue: bytes, lines: CommandLines, finding: Finding, *, fix: bool) -> Section:
    """What a finding means, and what to do about those that are left."""
    remedy, severity = REMEDIES[finding.code], finding.code.severity
    rows: list[Row] = [
        (severity.value, human.count(finding.left), _STYLES[severity]),
        ("cause", remedy.cause, None),
        ("cure", remedy.cure, None),
    ]
    if fix and (because := left_because(finding)):
        rows.append(("left because", because, None))
    rows.append(("command", command_for(lines, queue, finding), COMMAND_STYLE))
    for number, example in enumerate(finding.examples):
        rows.append(("" if number else "for example", escaped(example) or "(empty)", None))
    return Section(finding.code.value, rows)


def _summary(diagnosis: Diagnosis, *, fix: bool, explains_notes: bool) -> str:
    """The line that summarizes all findings. It names them: the overview may have scrolled away."""
    findings = diagnosis.findings
    counts = []
    for severity in Severity:
        found = [finding for finding in findings if finding.code.severity is severity]
        names = ", ".join(f"{one.code.value} {human.count(one.count)}" for one in found)
        if severity is Severity.NOTE and not explains_notes:
            names = "-v explains them"
        if found:
            counts.append(f"{severity.value}s {len(found)} ({names})")
    text = ", ".join(counts) or "no findings"
    if diagnosis.items is None:
        text += "; the items were not checked"
    else:
        text += f"; items {human.count(diagnosis.items)}"
    if fix:
        left = sum(
            finding.left for finding in findings if finding.code.severity is not Severity.NOTE
        )
        fixed = sum(finding.fixed for finding in findings)
        words = ("would fix", "leave") if diagnosis.dry_run else ("fixed", "left")
        both = zip(words, (fixed, left), strict=True)
        done = ", ".join(f"{word} {human.count(number)}" for word, number in both if number)
        text += f"; {done or 'nothing to fix'}"
    return (DRY_RUN if diagnosis.dry_run else "") + text
