"""What `--help` and the README say of a command beyond its options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rwq_cli.exit_codes import Code, ExitStatus

_ALWAYS: dict[Code, str] = {
    ExitStatus.OK: "done",
    ExitStatus.USAGE: "wrong usage",
    ExitStatus.SERVER: ExitStatus.SERVER.meaning,
    ExitStatus.INTERRUPTED: ExitStatus.INTERRUPTED.meaning,
}


@dataclass(frozen=True)
class Manual:
    """Examples and exit codes of one command.

    Attributes:
        examples: Command lines that work.
        exits: What exit codes mean here, besides those that mean the same everywhere.
        reads_only: Whether it changes nothing on the server.
        monitors: Whether its exit codes are those of monitoring plugins, all of them in `exits`,
            and its errors are one line on stdout and `UNKNOWN`.
    """

    examples: Sequence[str]
    exits: Mapping[Code, str] = field(default_factory=dict)
    reads_only: bool = False
    monitors: bool = False

    @property
    def all_exits(self) -> dict[Code, str]:
        """Every exit code of the command with its meaning, in order."""
        always = dict(_ALWAYS)
        if self.monitors:
            always = {ExitStatus.INTERRUPTED: ExitStatus.INTERRUPTED.meaning}
        merged = {**always, **self.exits}
        return {status: merged[status] for status in sorted(merged)}
