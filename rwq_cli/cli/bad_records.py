"""Reports bad records in the input, which are skipped."""

from collections.abc import Callable

from rwq_cli.cli.settings import Settings
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.field import to_json


def bad_record_reporter(settings: Settings, consequence: str) -> Callable[[str, int, str], None]:
    """A function that reports a bad record on stderr.

    Returns:
        The function. It takes the source of the record, its number from 1, and the reason.
    """

    def report(where: str, number: int, reason: str) -> None:
        if settings.output.is_json:
            record = {"error": reason, "code": "bad-record", "hint": None, "record": number}
            settings.environment.error(to_json(record).decode())
        else:
            place = escaped_text(where)
            shown = escaped_text(reason)
            settings.environment.error(f"rwq: {place} {number}: {shown}; {consequence}")

    return report
