"""`rwq doctor`: find what is wrong with a queue, and repair what it can automatically."""

from base64 import b64encode
from collections.abc import Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Annotated, Any

from rwq_cli.cli.connect import OpenQueues, command_lines, summary_end, warn_missing
from rwq_cli.cli.options import DEFAULT_GRACE, NULL_IDS, AllQueuesOption, GraceOption
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped, option
from rwq_cli.core.repair.doctor import Diagnosis, diagnose
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.core.state.rules import transit_of
from rwq_cli.output import human
from rwq_cli.output.field import COUNT, Cut, Field, Fields, field
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.output.sections import COMMAND_STYLE, Line, Section
from rwq_cli.views.command_lines import CommandLines, shell_word
from rwq_cli.views.meanings import REMEDIES, Remedy

_KNOWN = f"known findings: {', '.join(Code)}"
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


def _found(
    queue: bytes, finding: Finding, lines: CommandLines, *, fix: bool, dry_run: bool
) -> SimpleNamespace:
    """Return what the fields of a finding are read from."""
    severity, remedy = finding.code.severity, REMEDIES[finding.code]
    why_left = remedy.left_because or "it changed meanwhile"
    return SimpleNamespace(
        queue=queue,
        finding=finding,
        dry_run=dry_run,
        severity=severity,
        style=_STYLES[severity] if finding.left else None,
        examples=[escaped(example) for example in finding.examples],
        examples_b64=[b64encode(example).decode() for example in finding.examples],
        examples_are="keys" if finding.of_keys else "ids",
        remedy=remedy,
        command=_command(queue, finding, remedy, lines),
        left_because=why_left if fix and finding.left else None,
    )


def _command(queue: bytes, finding: Finding, remedy: Remedy, lines: CommandLines) -> str:
    """Return a command line, safe to paste, that fixes a finding or shows more, with an example."""
    example = finding.examples[0] if finding.examples else b""
    if transit := transit_of(finding.reason):
        return lines.of_transit(transit, queue, example)
    if not remedy.command.startswith("rwq "):
        words = remedy.command.removeprefix("redis-cli ").replace("KEY", shell_word(example))
        return f"{lines.redis_cli} {words}"
    verb, takes_id, _ = remedy.command.removeprefix("rwq ").partition(" ID")
    return lines.of_item(verb, queue, example) if takes_id else lines.of_queue(verb, queue)


FINDING_FIELDS: Fields[Any] = Fields(
    "A finding",
    field("queue", "queue", "the queue's name", is_bytes=True),
    field("code", "finding.code", "the finding's code", title="FINDING", cut=Cut.MIDDLE),
    field("severity", "severity", "`error`, `warning` or `note`", style=attrgetter("style")),
    field("count", "finding.count", "how many items or keys", COUNT),
    field("fixed", "finding.fixed", "how many of them were fixed (`--fix`)", COUNT, rank=1),
    field("left", "finding.left", "how many are left", COUNT),
    field("examples", "examples", "up to five IDs or keys, escaped (bytes: `examples_b64`)"),
    field("examples_b64", "examples_b64", "the bytes of the examples, in base64"),
    field("examples_are", "examples_are", "`ids` or `keys`"),
    field("cause", "remedy.cause", "what it is"),
    field("cure", "remedy.cure", "what to do about it"),
    field("command", "command", "a command line that fixes it or shows more"),
    field("left_because", "left_because", "why `--fix` leaves it"),
    field("dry_run", "dry_run", "whether nothing was changed"),
    has_other_ids=True,
)
PLAIN = ("code", "severity", "count", "fixed", "left", "examples", "command")


def _section(found: Any) -> Section:
    rows: list[Line] = [
        (found.severity.value, human.count(found.finding.left), _STYLES[found.severity]),
        *FINDING_FIELDS.rows(found, "cause", "cure", "left_because"),
        ("command", found.command, COMMAND_STYLE),
    ]
    for number, example in enumerate(found.examples):
        rows.append(("" if number else "for example", example or "(empty)", None))
    return Section(found.finding.code.value, rows)


def _named(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{one.code.value} {human.count(one.count)}" for one in findings)


def _healthy_line(diagnosis: Diagnosis, *, is_all: bool) -> str:
    name = escaped(diagnosis.queue)
    text = f"Nothing is wrong with {name}" if is_all else f"{name} has none of these findings"
    text += f": items {human.count(diagnosis.items)}"
    if notes := diagnosis.findings:
        text += f", notes {len(notes)} ({_named(notes)}; -v explains)"
    return text


def _summary(diagnosis: Diagnosis, *, fix: bool, explains_notes: bool) -> str:
    counts = []
    for severity in Severity:
        if found := [each for each in diagnosis.findings if each.code.severity is severity]:
            is_explained = severity is not Severity.NOTE or explains_notes
            names = _named(found) if is_explained else "-v explains them"
            counts.append(f"{severity.value}s {len(found)} ({names})")
    text = DRY_RUN if diagnosis.dry_run else ""
    text += ", ".join(counts) or "no findings"
    is_unread = diagnosis.items is None
    text += "; the items were not checked" if is_unread else f"; items {diagnosis.items:,}"
    if fix:
        left = sum(e.left for e in diagnosis.findings if e.code.severity is not Severity.NOTE)
        fixed = sum(each.fixed for each in diagnosis.findings)
        would_fix, leave = ("would fix", "leave") if diagnosis.dry_run else ("fixed", "left")
        done = [f"{would_fix} {human.count(fixed)}"] if fixed else []
        done += [f"{leave} {human.count(left)}"] if left else []
        text += f"; {', '.join(done) or 'nothing to fix'}"
    return text


def _codes(text: str) -> frozenset[Code]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in set(Code):
            raise InvalidArgument(f"no such finding: {name!r}", _KNOWN)
    return frozenset(map(Code, names))


@command(
    record=FINDING_FIELDS,
    ok="there are no errors or warnings, or none are left; notes do not count",
    no="errors or warnings were found, or are left after --fix",
    changes_with="fix",
    null=NULL_IDS,
    always_table=True,
)
def doctor(
    settings: Settings,
    fix: Annotated[bool, option("--fix", "Repair what it can; safe while workers run.")] = False,
    dry_run: Annotated[bool, option("--dry-run", "With --fix: only say what it would do.")] = False,
    grace_s: GraceOption = DEFAULT_GRACE,
    only: Annotated[
        frozenset[Code] | None, option("--only CODE,...", "Only these findings.", _codes)
    ] = None,
    skip: Annotated[
        frozenset[Code] | None, option("--skip CODE,...", "All findings except these.", _codes)
    ] = None,
    all_queues: AllQueuesOption = False,
) -> ExitStatus:
    """Find what is wrong with a queue; --fix repairs what can be repaired automatically. -v also
    explains the notes.

    rwq doctor -q jobs
    rwq doctor -q jobs --fix --dry-run
    rwq doctor -q jobs --fix --skip duplicated,due
    rwq doctor -q jobs -o ids --only held -0 | rwq release -q jobs --force -0 -
    """
    if dry_run and not fix:
        raise InvalidArgument("--dry-run needs --fix", "without --fix, doctor changes nothing")
    codes = (frozenset(Code) if only is None else only) - (skip or frozenset())
    if not codes:
        raise InvalidArgument("--only and --skip leave no findings", _KNOWN)
    opened = OpenQueues(settings, all_queues=all_queues, changes=fix).find()
    out, is_one = settings.out, opened.is_one
    out.continues = not is_one
    is_table = settings.output.is_table and settings.fields is None
    is_all = all(code in codes for code in Code if code.severity is not Severity.NOTE)
    explains_notes = settings.verbose or not settings.is_for_people
    columns: list[str | Field[Any]] = [*(PLAIN if is_one else (*PLAIN, "queue"))]
    if is_table:
        fixed = FINDING_FIELDS["fixed"]._replace(title="WOULD FIX" if dry_run else "FIXED")
        columns = ["severity", "code", "count"]
        columns += [fixed, "left"] if fix else []
    status, all_ids = ExitStatus.OK, settings.output is OutputFormat.IDS
    settings.environment.interrupted = "some of it may be fixed"
    for number, queue in enumerate(opened.queues):
        diagnosis = diagnose(
            queue, codes=codes, fix=fix, grace_s=grace_s, dry_run=dry_run, all_ids=all_ids
        )
        if diagnosis.items == 0:
            warn_missing(settings, queue)
        if not diagnosis.is_healthy:
            status = ExitStatus.NO
        findings, is_verbose = diagnosis.findings, settings.verbose
        serious = tuple(e for e in findings if e.code.severity is not Severity.NOTE)
        is_news = serious or any(each.fixed for each in findings) or (is_verbose and findings)
        if is_table and not is_news:
            if not settings.quiet:
                end = summary_end(settings, None)
                out.text(f"{_healthy_line(diagnosis, is_all=is_all)}{end}\n")
            continue
        if settings.quiet and settings.is_for_people:
            findings = serious
        lines = command_lines(settings, queue.connection)
        found = [_found(queue.name, each, lines, fix=fix, dry_run=dry_run) for each in findings]
        if is_table and not is_one:
            out.sections([Section(escaped(queue.name), ())], is_first=not number)
        ids = (each.examples for each in findings if not each.of_keys)
        out.table(found, FINDING_FIELDS, columns, wide=columns, id_batches=ids)
        if is_table:
            explained = [e for e in found if explains_notes or e.severity is not Severity.NOTE]
            out.sections([_section(e) for e in explained if e.finding.left], is_first=False)
        line = _summary(diagnosis, fix=fix, explains_notes=explains_notes)
        line += summary_end(settings, escaped(queue.name) if is_one else None)
        out.note(line if is_one else f"{escaped(queue.name)}: {line}")
    if not is_one:
        out.end()
    return status
