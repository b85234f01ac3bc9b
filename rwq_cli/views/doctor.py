"""The findings of the doctor, each with its cause and its cure."""

from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.repair.findings import Finding, Severity
from rwq_cli.core.state.transit import transit_of
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Cut, Field, Fields
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.output.sections import COMMAND_STYLE, Row, Section
from rwq_cli.views.command_lines import CommandLines, shell_word
from rwq_cli.views.remedies import REMEDIES

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


class Found(NamedTuple):
    """A finding of a queue; `fix` is true if what can be fixed was fixed."""

    queue: bytes
    finding: Finding
    fix: bool
    dry_run: bool
    lines: CommandLines

    @property
    def severity(self) -> Severity:
        """Its severity."""
        return self.finding.code.severity

    @property
    def command(self) -> str:
        """A command line that fixes it or shows more, with its first example, safe to paste."""
        template = REMEDIES[self.finding.code].command
        example = self.finding.examples[0] if self.finding.examples else b""
        if transit := transit_of(self.finding.reason):
            return self.lines.of_transit(transit, self.queue, example)
        if not template.startswith("rwq "):
            words = template.removeprefix("redis-cli ").replace("KEY", shell_word(example))
            return self.lines.of_redis_cli(words)
        verb, takes_id, _ = template.removeprefix("rwq ").partition(" ID")
        if takes_id:
            return self.lines.of_item(verb, self.queue, example)
        return self.lines.of_queue(verb, self.queue)

    @property
    def left_because(self) -> str | None:
        """Why `--fix` leaves some of them; None if it leaves none."""
        if not (self.fix and self.finding.left):
            return None
        return REMEDIES[self.finding.code].left_because or "it changed meanwhile"


def _count(name: str, help: str, rank: int = 0) -> Field[Found]:
    return Field(
        name,
        lambda found: getattr(found.finding, name),
        help,
        format=lambda found: human.count(getattr(found.finding, name)),
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
        lambda found: found.severity.value,
        "`error`, `warning` or `note`",
        style=lambda found: _STYLES[found.severity] if found.finding.left else None,
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
        "examples_are", lambda found: "keys" if found.finding.of_keys else "ids", "`ids` or `keys`"
    ),
    Field("cause", lambda found: REMEDIES[found.finding.code].cause, "what it is"),
    Field("cure", lambda found: REMEDIES[found.finding.code].cure, "what to do about it"),
    Field("command", lambda found: found.command, "a command line that fixes it or shows more"),
    Field("left_because", lambda found: found.left_because, "why `--fix` leaves it"),
    Field("dry_run", lambda found: found.dry_run, "whether nothing was changed"),
    has_other_ids=True,
)
PLAIN = ("code", "severity", "count", "fixed", "left", "examples", "command")


def table_columns(*, fix: bool, dry_run: bool) -> list[str | Field[Found]]:
    """The columns of the table."""
    columns: list[str | Field[Found]] = ["severity", "code", "count"]
    if fix:
        title = "WOULD FIX" if dry_run else "FIXED"
        columns += [FINDING_FIELDS["fixed"]._replace(title=title), "left"]
    return columns


def finding_section(found: Found) -> Section:
    """What a finding means, and what to do about those that are left."""
    finding, remedy = found.finding, REMEDIES[found.finding.code]
    rows: list[Row] = [
        (found.severity.value, human.count(finding.left), _STYLES[found.severity]),
        ("cause", remedy.cause, None),
        ("cure", remedy.cure, None),
    ]
    if found.left_because:
        rows.append(("left because", found.left_because, None))
    rows.append(("command", found.command, COMMAND_STYLE))
    for number, example in enumerate(finding.examples):
        rows.append(("" if number else "for example", escaped(example) or "(empty)", None))
    return Section(finding.code.value, rows)


def healthy_line(diagnosis: Diagnosis, *, is_all: bool) -> str:
    """The one line about a queue without errors and warnings."""
    name = escaped(diagnosis.queue)
    text = f"Nothing is wrong with {name}" if is_all else f"{name} has none of these findings"
    parts = [f"items {human.count(diagnosis.items)}"]
    if diagnosis.findings:
        parts.append(f"notes {len(diagnosis.findings)} ({_named(diagnosis.findings)}; -v explains)")
    return f"{text}: {', '.join(parts)}"


def _named(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{one.code.value} {human.count(one.count)}" for one in findings)


def summary(diagnosis: Diagnosis, *, fix: bool, explains_notes: bool) -> str:
    """The line that summarizes all findings. It names them: the overview may have scrolled away."""
    counts = []
    for severity in Severity:
        found = [each for each in diagnosis.findings if each.code.severity is severity]
        is_explained = severity is not Severity.NOTE or explains_notes
        if found:
            names = _named(found) if is_explained else "-v explains them"
            counts.append(f"{severity.value}s {len(found)} ({names})")
    text = ", ".join(counts) or "no findings"
    if diagnosis.items is None:
        text += "; the items were not checked"
    else:
        text += f"; items {human.count(diagnosis.items)}"
    if fix:
        problems = [e for e in diagnosis.findings if e.code.severity is not Severity.NOTE]
        fixed = sum(each.fixed for each in diagnosis.findings)
        words = ("would fix", "leave") if diagnosis.dry_run else ("fixed", "left")
        both = zip(words, (fixed, sum(each.left for each in problems)), strict=True)
        done = ", ".join(f"{word} {human.count(number)}" for word, number in both if number)
        text += f"; {done or 'nothing to fix'}"
    return (DRY_RUN if diagnosis.dry_run else "") + text
