"""What is kept of an item after it was completed, beside the data that go."""

from dataclasses import dataclass
from enum import StrEnum

from rwq_cli.core.batches import BATCH_BYTES
from rwq_cli.core.errors import InvalidArgument

# An outcome makes a new key for each item: while the server makes room in its table of keys, that
# costs up to fifteen microseconds instead of two.
_KEPT_ITEMS = 250
RESULT_TTL_S = 3600.0


class Verdict(StrEnum):
    """How an item came to its end."""

    COMPLETED = "completed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """The outcome to keep of each item that a call completes.

    Attributes:
        result: The result, the same for each; None for an outcome without one.
        verdict: `REJECTED` for what was given up.
        ttl_ms: How long to keep it, milliseconds, 1 or more.

    Raises:
        InvalidArgument: It would be kept for no time.
    """

    result: bytes | None = None
    verdict: Verdict = Verdict.COMPLETED
    ttl_ms: int = round(RESULT_TTL_S * 1000)

    def __post_init__(self) -> None:
        if self.ttl_ms < 1:
            raise InvalidArgument(
                "a result cannot be kept for no time", "give a time to keep it of 1 ms or more"
            )

    @property
    def items_max(self) -> int:
        """Of how many items one call may keep it."""
        return max(1, min(_KEPT_ITEMS, BATCH_BYTES // max(1, len(self.result or b""))))


def result_args(result_options: ResultOptions | None) -> tuple[object, ...]:
    """What the scripts that complete are told of it; None keeps nothing."""
    if result_options is None:
        return (b"", b"", 0, b"")
    has_result = int(result_options.result is not None)
    return (
        result_options.ttl_ms,
        result_options.verdict.value,
        has_result,
        result_options.result or b"",
    )
