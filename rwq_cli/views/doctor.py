"""The findings of the doctor, each with its cause and its cure."""

from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.repair.findings import Finding, Severity
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Cut, Field, Fields
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.output.records import Output
from rwq_cli.output.sections import COMMAND_STYLE, Row, Section
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.remedies import REMEDIES, Remedy, command_for, left_because

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


class Found(NamedTuple):
    """A finding, and what it takes to show it.

    Attributes:
        queue: The queue's name.
        finding: The finding.
        fix: True if what can be fixed was fixed.
        dry_run: True if nothing was changed.
        lines: Makes the command lines.
    """

    queue: bytes
    finding: Finding
    fix: bool
    dry_run: bool
    lines: CommandLines

    @property
    def remedy(self) -> Remedy:
        """The cause and the cure."""
        return REMEDIES[self.finding.code]

    @property
    def command(self) -> str:
        """A command line that fixes it or shows more."""
        return command_for(self.lines, self.queue, self.finding)

    @property
    def left_because(self) -> str | None:
        """Why `--fix` leaves it."""
        return left_because(self.finding) if self.fix else None


def _count(name: str, help: str, title: str = "", rank: int = 0) -> Field[Found]:
    def value(found: Found) -> int:
        number: int = getattr(found.finding, name)
        return number

    return Field(
        name,
        value,
        help,
        title=title,
        format=lambda found: human.count(value(found)),
        right=True,
        rank=rank,
    )


FINDING_FIELDS: Fields[Found] = Fields(
    "A finding",
    Field("queue", lambda found: found.queue, "the queue's name", is_bytes=True),
    Field(
        "code",
        lambda found: found.finding.code.value,
        "the finding's code",
        title="FINDING",
        cut=Cut.MIDDLE,
    ),
    Field(
        "severity",
        lambda found: found.finding.code.severity.value,
        "`error`, `warning` or `note`",
        style=lambda found: _STYLES[found.finding.code.severity] if found.finding.left else None,
    ),
    _count("count", "how many items or keys"),
    _count("fixed", "how many of them were fixed (`--fix`)", rank=1),
    _count("left", "how many are left"),
    Field(
        "examples",
        lambda found: [escaped(example) for example in found.finding.examples],
        "up to five IDs or keys, escaped; `examples_b64` has their bytes",
    ),
    Field(
        "examples_b64",
        lambda found: [b64encode(example).decode() for example in found.finding.examples],
        "the bytes of the examples, in base64",
    ),
    Field(
        "examples_are",
        lambda found: "keys" if found.finding.of_keys else "ids",
        "`ids` or `keys`",
    ),
    Field("cause", lambda found: found.remedy.cause, "what it is"),
    Field("cure", lambda found: found.remedy.cure, "what to do about it"),
    Field("command", lambda found: found.command, "a command line that fixes it or shows more"),
    Field("left_because", lambda found: found.left_because, "why `--fix` leaves it"),
    Field("dry_run", lambda found: found.dry_run, "whether nothing was changed"),
    has_other_ids=True,
)
_PLAIN = ("code", "severity", "count", "fixed", "left", "examples", "command")


def write_findings(
    out: Output,
    findings: Sequence[Found],
    *,
    empty: str,
    explains_notes: bool,
    has_queue: bool,
    is_first: bool,
) -> None:
    """Write what was found in a queue."""
    if not out.options.format.is_table or out.options.fields is not None:
        out.table(
            findings,
            FINDING_FIELDS,
            (*_PLAIN, "queue") if has_queue else _PLAIN,
            id_batches=(each.finding.examples for each in findings if not each.finding.of_keys),
        )
        return
    if findings and has_queue:
        out.heading(escaped(findings[0].queue), is_first=is_first)
    columns: list[str | Field[Found]] = ["severity", "code", "count"]
    if findings and findings[0].fix:
        title = "WOULD FIX" if findings[0].dry_run else "FIXED"
        columns += [FINDING_FIELDS["fixed"]._replace(title=title), "left"]
    out.table(findings, FINDING_FIELDS, columns, wide=columns, empty=empty)
    out.sections(
        (
            _section(each)
            for each in findings
            if each.finding.left
            and (explains_notes or each.finding.code.severity is not Severity.NOTE)
        ),
        is_first=False,
    )


def _section(found: Found) -> Section:
    """What a finding means, and what to do about those that are left."""
    finding, severity = found.finding, found.finding.code.severity
    rows: list[Row] = [
        (severity.value, human.count(finding.left), _STYLES[severity]),
        ("cause", found.remedy.cause, None),
        ("cure", found.remedy.cure, None),
    ]
    if found.left_because:
        rows.append(("left because", found.left_because, None))
    rows.append(("command", found.command, COMMAND_STYLE))
    for number, example in enumerate(finding.examples):
        rows.append(("" if number else "for example", escaped(example) or "(empty)", None))
    return Section(finding.code.value, rows)


def summary(diagnosis: Diagnosis, *, fix: bool, explains_notes: bool) -> str:
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
