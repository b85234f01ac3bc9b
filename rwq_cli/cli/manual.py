"""What a command declares about itself besides its options."""

from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.exit_codes import ExitCode, ExitStatus

if TYPE_CHECKING:
    from rwq_cli.output.field import Fields
    from rwq_cli.output.options import OutputFormat

_OWN_MEANINGS: dict[ExitCode, str] = {ExitStatus.OK: "done", ExitStatus.USAGE: "usage error"}
# What exit code 3 means for a command that only reads.
UNWRITTEN = "the output could not be written"
_OF_MONITORS = (ExitStatus.INTERRUPTED, ExitStatus.TERMINATED)


class Manual(NamedTuple):
    """What a command declares about itself besides its options."""

    # Command lines that work.
    examples: Sequence[str] = ()
    # The meanings of exit codes that are specific to this command.
    exits: Mapping[ExitCode, str] = {}
    # It changes nothing on the server.
    reads_only: bool = False
    # It is allowed in a read-only context: it checks itself which of its actions change the server.
    works_read_only: bool = False
    # The flag without which it changes nothing on the server, such as `fix`.
    changes_with: str | None = None
    # It describes rather than lists: in a pipe, it writes the same as on a terminal.
    always_table: bool = False
    # Its default format; None if RWQ_OUTPUT, or else where the output goes, decides.
    output: str | None = None
    # Its exit codes are those of monitoring plugins, and an error is a line on stdout.
    monitors: bool = False
    # The fields of its records, or a function of its options that returns them.
    record: "Fields[Any] | Callable[[Mapping[str, Any]], Fields[Any]] | None" = None
    # It removes or replaces items or data: it is never suggested for a mistyped command.
    destructive: bool = False
    # It may change another server, too, whose context `--yes=NAME` may name.
    writes_elsewhere: bool = False
    # What Ctrl-C says that was done, unless there is a report; empty if the results say it.
    unfinished: str = "nothing done"
    # The columns of `-o plain`, by what a line stands for.
    plain: Mapping[str, str] = {}
    # Options of which one may be used at most, such as `--front --delay`; and for an option, the
    # one without which it means nothing.
    excludes: Sequence[str] = ()
    needs: Mapping[str, str] = {}

    @property
    def all_exits(self) -> dict[ExitCode, str]:
        """Every exit code of the command with its meaning, in order."""
        usual = [status for status in ExitStatus if status is not ExitStatus.NO]
        statuses = _OF_MONITORS if self.monitors else usual
        is_batch = not (self.reads_only or self.always_table)
        meanings = _OWN_MEANINGS | ({} if is_batch else {ExitStatus.PARTIAL: UNWRITTEN})
        merged: dict[ExitCode, str] = {
            status: meanings.get(status, status.summary) for status in statuses
        }
        merged.update(self.exits)
        return {status: merged[status] for status in sorted(merged)}

    def fields(self, options: Mapping[str, Any] = MappingProxyType({})) -> "Fields[Any] | None":
        return self.record(options) if callable(self.record) else self.record

    def usual_format(
        self, output: "OutputFormat", options: Mapping[str, Any], *, has_fields: bool
    ) -> str | None:
        """Return the format to use where this one is the usual one; None for the default."""
        if output.value == "json" and (options.get("watch") or options.get("every")):
            return "jsonl"
        fields = self.fields(options)
        has_output = fields is not None and fields.has(output) and not has_fields
        can_write = not output.is_raw or has_output
        return output if can_write else None

    def check_combined(self, used: Set[str]) -> None:
        """Raise `InvalidArgument` if options that were used contradict each other."""
        for group in ("--all-queues -q", "--all --state", *self.excludes):
            both = [flag for flag in group.split() if flag in used]
            if len(both) > 1:
                raise InvalidArgument.both(*both[:2])
        for flag, other in self.needs.items():
            if flag in used and other not in used:
                raise InvalidArgument(f"{flag} needs {other}", f"add {other}, or leave {flag} out")

    def may_change(self, options: Mapping[str, object]) -> bool:
        if self.changes_with is not None and not options.get(self.changes_with):
            return False
        return not (self.reads_only or self.works_read_only or options.get("dry_run"))
