"""What `--help` and the README say of a command beyond its options."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rwq_cli.exits import ExitStatus

_ALWAYS = {
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
    """

    examples: Sequence[str]
    exits: dict[ExitStatus, str] = field(default_factory=dict)
    reads_only: bool = False

    @property
    def all_exits(self) -> dict[ExitStatus, str]:
        """Every exit code of the command with its meaning, in order."""
        merged = {ExitStatus.OK: "done", **_ALWAYS, **self.exits}
        return {status: merged[status] for status in sorted(merged)}
