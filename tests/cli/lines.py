"""A line of words for every command of the registry, on a queue with an item of each kind.

For tests that hold for all commands, which find a new one by themselves: a command without a line
here fails `test_contract.py`.
"""

from tests.all_commands import CommandInfo, all_commands
from tests.conftest import Foreign

# Each does or shows something with the items of `fill`, and asks no question.
LINES = {
    "add": "add x y",
    "work": "work --drain -- true",
    "lease": "lease -n 2",
    "complete": "complete w1 gone",
    "result": "result done",
    "touch": "touch l1 w1",
    "release": "release l1 --force --yes",
    "bury": "bury w1 gone",
    "kick": "kick b1 gone",
    "edit": "edit w1 --yes -f /dev/null",
    "rm": "rm w1 gone --yes",
    "mv": "mv --to other w1 --yes",
    "purge": "purge --yes",
    "undo": "undo --list",
    "ls": "ls",
    "leases": "leases",
    "show": "show w1",
    "stats": "stats",
    "queues": "queues",
    "diff": "diff jobs copy",
    "wait": "wait --below 9",
    "clean light": "clean light --grace 0",
    "clean deep": "clean deep --grace 0",
    "doctor": "doctor --grace 0",
    "check": "check",
    "export": "export",
    "import": "import -",
    "help": "help ls",
    "context list": "context list",
    "context show": "context show",
    "context set": "context set dev -u local:",
    "context use": "context use dev",
    "context rm": "context rm dev",
    "context check": "context check",
    "local start": "local status",
    "local stop": "local status",
    "local status": "local status",
    "completion": "completion bash",
}
# They start a server of their own, or draw on a terminal.
ELSEWHERE = {"demo", "top"}
COMMANDS: dict[str, CommandInfo] = {
    each.path: each for each in all_commands() if each.path not in ELSEWHERE
}
# They know their server, or need none.
WITHOUT_SERVER = {
    *("undo", "help", "completion", "local start", "local stop", "local status"),
    *("context list", "context show", "context set", "context use", "context rm"),
}
# What they read on stdin.
STDIN = {
    "import": b'{"rwq_export": 1, "queue": "jobs"}\n{"id": "i1", "data": "x", "place": "main"}\n'
}


def fill(foreign: Foreign) -> None:
    """Empty the server, and add three waiting items and one of each other kind, and a result."""
    foreign.raw.flushall()
    foreign.waiting(b"w1", b"w2", b"w3")
    foreign.abandoned(b"a1")
    foreign.leased(b"l1", holder=b"worker-7", ttl_ms=None)
    foreign.buried(b"b1")
    foreign.delayed(b"d1", 9_999_999_999_999)
    Foreign(foreign.raw, b"copy").waiting(b"w1")
    fields = {"status": "completed", "completed_ms": 1_700_000_000_000}
    foreign.raw.hset("jobs:result:done", mapping=fields)  # type: ignore[arg-type]


def words_of(path: str, *options: str) -> list[str]:
    """The words of a command's line, with these options behind its name."""
    words = LINES[path].split()
    at = len(path.split())
    return [*words[:at], *options, *words[at:]]


def has_option(path: str, name: str) -> bool:
    """True if the command has this option."""
    return any(name in parameter.opts for parameter in COMMANDS[path].command.params)
