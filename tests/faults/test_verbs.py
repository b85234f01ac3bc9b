"""Every command that changes items is cut, killed and misled by the tests of this folder."""

from tests.all_commands import all_commands
from tests.faults.verbs import VERBS

# Each with where it meets faults instead, or why there is none to meet.
ELSEWHERE = {
    **dict.fromkeys(("context set", "context use", "context rm"), "no server: a file"),
    **dict.fromkeys(("local start", "local stop"), "tests/local"),
    "demo": "a server of its own",
    **dict.fromkeys(("result", "wait"), "they promote what is due, as a clean does"),
    "top": "tests/top",
    "work": "tests/live/test_chaos.py, tests/cli/work",
}


def test_every_command_that_changes_items_is_among_the_verbs() -> None:
    lines = [f"{line} " for verb in VERBS for line in (verb.words, *verb.first)]
    changing = {known.path for known in all_commands() if not known.manual.reads_only}
    missing = {path for path in changing if not any(line.startswith(f"{path} ") for line in lines)}
    assert missing == set(ELSEWHERE)
