"""`rwq doctor`: find what is wrong with a queue, and repair what it can automatically."""

from base64 import b64encode
from collections.abc import Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rwq_cli.cli.connect import OpenQueues, describe_target, make_command_lines, warn_missing
from rwq_cli.cli.options import DEFAULT_GRACE, NULL_IDS, AllQueuesOption, GraceOption
from rwq_cli.cli.settings import LOCAL
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped, option
from rwq_cli.core.repair.doctor import Diagnosis, diagnose, diagnose_server
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.core.state.rules import transit_of
from rwq_cli.local.server import AOF_CUT
from rwq_cli.output import human
from rwq_cli.output.field import COUNT, Cut, Field, Fields, field
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.sections import COMMAND_STYLE, Line, Section
from rwq_cli.output.tally import DRY_RUN
from rwq_cli.views.command_lines import CommandLines, shell_word
from rwq_cli.views.health import server_in_words
from rwq_cli.views.meanings import EVICTED_GHOSTS, REMEDIES, Remedy

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

_KNOWN = f"known findings: {', '.join(Code)}"
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


def _record(
    queue: bytes | None,
    finding: Finding,
    lines: CommandLines,
    *,
    fix: bool,
    dry_run: bool,
    has_evicted: bool,
) -> SimpleNamespace:
    """Return what the fields of a finding are read from."""
    severity, remedy = finding.code.severity, REMEDIES[finding.code]
    if finding.code is Code.GHOST and has_evicted:
        remedy = EVICTED_GHOSTS
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
        servers=list(map(server_in_words, finding.servers)),
        left_because=why_left if fix and finding.left else None,
    )


def _command(queue: bytes | None, finding: Finding, remedy: Remedy, lines: CommandLines) -> str:
    """Return a command line, safe to paste, that fixes a finding or shows more, with an example."""
    example = finding.examples[0] if finding.examples else b""
    if queue is not None and (transit := transit_of(finding.reason)):
        return lines.of_transit(transit, queue, example)
    if not remedy.command.startswith("rwq "):
        words = remedy.command.removeprefix("redis-cli ").replace("KEY", shell_word(example))
        return f"{lines.redis_cli} {words}"
    if queue is None:
        return f"{remedy.command}{lines.server} --all-queues"
    verb, takes_id, _ = remedy.command.removeprefix("rwq ").partition(" ID")
    return lines.of_item(verb, queue, example) if takes_id else lines.of_queue(verb, queue)


_COLOURED = {"style": attrgetter("style")}
FINDING_FIELDS: Fields[Any] = Fields(
    "A finding",
    field("queue", "queue", "the queue's name; null for a server's", is_bytes=True),
    field("code", "finding.code", "the finding's code", title="FINDING", cut=Cut.MIDDLE),
    field(
        "severity", "severity", "`error`, `warning` or `note`", rank=1, style=attrgetter("style")
    ),
    field("count", "finding.count", "how many items or keys", COUNT),
    field("fixed", "finding.fixed", "how many of them were fixed (`--fix`)", COUNT),
    field("left", "finding.left", "how many are left", COUNT),
    field("examples", "examples", "up to five IDs or keys, escaped (bytes: `examples_b64`)"),
    field("examples_b64", "examples_b64", "the bytes of the examples, in base64"),
    field("examples_are", "examples_are", "`ids` or `keys`"),
    field("cause", "remedy.cause", "what it is"),
    field("cure", "remedy.cure", "what to do about it"),
    field("command", "command", "a command line that fixes it or shows more"),
    field("servers", "servers", "of a finding about the server: its state, of each node"),
    field("left_because", "left_because", "why `--fix` leaves it"),
    field("dry_run", "dry_run", "whether nothing was changed"),
    has_other_ids=True,
)
PLAIN = ("code", "severity", "count", "fixed", "left", "examples", "command")


def _section(record: Any) -> Section:
    rows: list[Line] = [
        (record.severity.value, human.count(record.finding.left), _STYLES[record.severity]),
        *FINDING_FIELDS.rows(record, "cause", "cure", "left_because"),
        *(("server", text, None) for text in record.servers),
        ("command", record.command, COMMAND_STYLE),
    ]
    label = "most memory" if record.finding.names_queue else "for example"
    for number, example in enumerate(record.examples):
        rows.append(("" if number else label, example or "(empty)", None))
    return Section(record.finding.code.value, rows)


def _list_findings(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{finding.code.value} {human.count(finding.count)}" for finding in findings)


def _name(diagnosis: Diagnosis) -> str:
    return "the server" if diagnosis.queue is None else escaped(diagnosis.queue)


def _describe_healthy(diagnosis: Diagnosis, *, is_all: bool) -> str:
    name, notes = _name(diagnosis), diagnosis.findings
    nothing = f"{name} has {'only notes' if notes else 'none'} of these findings"
    if diagnosis.items == 0 and is_all:
        # It may be gone, or have another name.
        text = f"{name} is empty"
    else:
        text = f"Nothing is wrong with {name}" if is_all else nothing
        text += "" if diagnosis.items is None else f": items {human.count(diagnosis.items)}"
    if notes:
        text += f", notes {len(notes)} ({_list_findings(notes)}; -v explains)"
    return text


def _summary(diagnosis: Diagnosis, *, fix: bool, explains_notes: bool) -> str:
    counts = []
    for severity in Severity:
        if findings := [
            finding for finding in diagnosis.findings if finding.code.severity is severity
        ]:
            is_explained = severity is not Severity.NOTE or explains_notes
            names = _list_findings(findings) if is_explained else "-v explains them"
            counts.append(f"{severity.value}s {len(findings)} ({names})")
    text = DRY_RUN if diagnosis.dry_run else ""
    text += ", ".join(counts) or "no findings"
    is_unread = diagnosis.items is None
    if diagnosis.queue is None:
        return text
    text += "; the items were not checked" if is_unread else f"; items {diagnosis.items:,}"
    if fix:
        remaining = sum(finding.left for finding in diagnosis.serious)
        fixed = sum(finding.fixed for finding in diagnosis.findings)
        would_fix, leave = ("would fix", "leave") if diagnosis.dry_run else ("fixed", "left")
        done = [f"{would_fix} {human.count(fixed)}"] if fixed else []
        done += [f"{leave} {human.count(remaining)}"] if remaining else []
        text += f"; {', '.join(done) or 'nothing to fix'}"
    return text


def _codes(text: str) -> frozenset[Code]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in set(Code):
            raise InvalidArgument(f"no such finding: {name!r}", _KNOWN)
    return frozenset(map(Code, names))


class DoctorOptions(NamedTuple):
    """What is looked for, and whether it is fixed."""

    settings: Settings
    fix: Annotated[bool, option("--fix", "Repair what it can; safe while workers run.")] = False
    dry_run: Annotated[bool, option("--dry-run", "With --fix: only say what it would do.")] = False
    grace_s: GraceOption = DEFAULT_GRACE
    only: Annotated[
        frozenset[Code] | None, option("--only CODE,...", "Only these findings.", _codes)
    ] = None
    skip: Annotated[
        frozenset[Code] | None, option("--skip CODE,...", "All findings except these.", _codes)
    ] = None
    all_queues: AllQueuesOption = False

    @property
    def codes(self) -> frozenset[Code]:
        return (frozenset(Code) if self.only is None else self.only) - (self.skip or frozenset())

    @property
    def is_all(self) -> bool:
        """Whether a queue without findings is a healthy one."""
        return all(code in self.codes for code in Code if code.severity is not Severity.NOTE)

    def check(self) -> None:
        if self.dry_run and not self.fix:
            raise InvalidArgument("--dry-run needs --fix", "without --fix, doctor changes nothing")
        if not self.codes:
            raise InvalidArgument("--only and --skip leave no findings", _KNOWN)


@command(
    record=FINDING_FIELDS,
    ok="there are no errors or warnings, or none are left; notes do not count",
    no="errors or warnings were found, or are left after --fix",
    changes_with="fix",
    null=NULL_IDS,
    always_table=True,
)
def doctor(settings: Settings, options: DoctorOptions) -> ExitStatus:
    """Find what is wrong with a queue; --fix repairs what can be repaired automatically. -v also
    explains the notes.

    rwq doctor -q jobs
    rwq doctor -q jobs --fix --dry-run
    rwq doctor -q jobs --fix --skip duplicated,due
    rwq doctor -q jobs -o ids --only held -0 | rwq release -q jobs --force -0 -
    """
    options.check()
    opened = OpenQueues(settings, all_queues=options.all_queues, changes=options.fix).find()
    report = _Report(options, is_one=opened.is_one)
    url = settings.server.url
    if url.startswith(LOCAL) and settings.local_server(url).status().aof_cut:
        settings.environment.note(f"rwq: {AOF_CUT}")
    if not opened.is_one:
        # Once for all queues.
        report.write(
            diagnose_server(opened.connection, options.codes, opened.queues), opened.connection
        )
    for queue in opened.queues:
        diagnosis = diagnose(
            queue,
            codes=options.codes,
            fix=options.fix,
            grace_s=options.grace_s,
            dry_run=options.dry_run,
            all_ids=settings.output is OutputFormat.IDS,
            servers=None if opened.is_one else (),
        )
        if diagnosis.items == 0:
            warn_missing(settings, queue)
        report.write(diagnosis, queue.connection)
    return report.end()


class _Report:
    """Writes each diagnosis, and at the end a table of all of them."""

    def __init__(self, options: DoctorOptions, *, is_one: bool) -> None:
        self._settings = settings = options.settings
        self._options, self._is_one = options, is_one
        self._out = settings.out
        if not is_one:
            self._out.continue_until_end()
        if options.fix and not options.dry_run:
            self._out.interrupted_text = "some findings may be fixed"
        self._is_table = settings.output.is_table and settings.fields is None
        self._explains_notes = settings.verbose or not settings.is_for_people
        self._diagnoses: list[Diagnosis] = []

    def write(self, diagnosis: Diagnosis, connection: "Connection") -> None:
        is_first = not self._diagnoses
        self._diagnoses.append(diagnosis)
        settings, findings = self._settings, diagnosis.findings
        has_fixed = any(finding.fixed for finding in findings)
        is_news = diagnosis.serious or has_fixed or (settings.verbose and findings)
        if self._is_table and not is_news:
            self._write_healthy(diagnosis)
            return
        if settings.quiet and settings.is_for_people:
            findings = diagnosis.serious
        lines = make_command_lines(settings, connection)
        fix, dry_run, name = self._options.fix, self._options.dry_run, diagnosis.queue
        all_findings = (*self._diagnoses[0].findings, *findings)
        evicted = Code.EVICTED in [finding.code for finding in all_findings]
        records = [
            _record(name, finding, lines, fix=fix, dry_run=dry_run, has_evicted=evicted)
            for finding in findings
        ]
        if self._is_table and not self._is_one:
            self._out.sections([Section(_name(diagnosis), ())], is_first=is_first)
        ids = (finding.examples for finding in findings if not finding.of_keys)
        columns = self._columns()
        self._out.table(records, FINDING_FIELDS, columns, wide=columns, id_batches=ids)
        if self._is_table:
            explained = [
                record
                for record in records
                if record.finding.left
                and (self._explains_notes or record.severity is not Severity.NOTE)
            ]
            self._out.sections(list(map(_section, explained)), is_first=False)
        line = _summary(diagnosis, fix=fix, explains_notes=self._explains_notes)
        line += describe_target(settings, _name(diagnosis) if self._is_one else None)
        self._out.note(line if self._is_one else f"{_name(diagnosis)}: {line}")

    def _write_healthy(self, diagnosis: Diagnosis) -> None:
        if not self._settings.quiet and (diagnosis.queue is not None or diagnosis.findings):
            end = describe_target(self._settings, None)
            self._out.text(f"{_describe_healthy(diagnosis, is_all=self._options.is_all)}{end}\n")

    def _columns(self) -> list[str | Field[Any]]:
        if not self._is_table:
            return [*(PLAIN if self._is_one else (*PLAIN, "queue"))]
        title = "WOULD FIX" if self._options.dry_run else "FIXED"
        columns: list[str | Field[Any]] = ["severity", "code", "count"]
        if self._options.fix:
            columns += [FINDING_FIELDS["fixed"]._replace(title=title), "left"]
        return columns

    def end(self) -> ExitStatus:
        if not self._is_one:
            troubled = [diagnosis for diagnosis in self._diagnoses if not diagnosis.is_healthy]
            if self._is_table and len(self._diagnoses) > 2 and troubled:
                rows: list[Line] = [
                    (_name(ill), _list_findings(ill.serious), _STYLES[ill.serious[0].code.severity])
                    for ill in troubled
                ]
                of = f"{len(troubled):,} of {len(self._diagnoses):,}"
                self._out.sections([Section(f"with findings: {of}", rows)], is_first=False)
            self._out.end()
        is_healthy = all(diagnosis.is_healthy for diagnosis in self._diagnoses)
        return ExitStatus.OK if is_healthy else ExitStatus.NO
