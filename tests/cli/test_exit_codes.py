"""The exit codes: each command ends with each of the codes that its help promises."""

import importlib
import json
import pkgutil
import re

import pytest

import rwq_cli
from rwq_cli.core import Code
from rwq_cli.core.errors import RwqError
from rwq_cli.exit_codes import ExitStatus, exit_status_of
from tests.all_commands import all_commands
from tests.cli.lines import LINES, WITHOUT_SERVER, fill
from tests.conftest import Foreign, contents
from tests.driver import Rwq

# Their codes are tested beside them: they start servers, change files, need a terminal, or have
# codes of monitors.
TESTED_ELSEWHERE = {
    *("local start", "local stop", "local status", "demo", "check", "top"),
    *("context list", "context show", "context set", "context use", "context rm", "context check"),
}
# The lines of these have failures or findings, or read something.
NOT_0 = {"touch", "diff", "doctor", "import", "undo"} | TESTED_ELSEWHERE
# Where it is said here, the error begins with this.
USAGE = {
    **dict.fromkeys(
        (
            "",
            "add x --nothing",
            "add x --format what",
            "add -f / x",
            "add -f /etc/passwd -f nowhere",
            "add x x --id a",
            "add x --at 8:00",
            "add x --delay -5m",
            "add x --reconnect 1m",
            "lease --for x",
            "lease --for 99999999999999999999",
            "lease -n 0",
            "lease --id w1 -n 1",
            "lease --id w1 --wait",
            "release a1 --front --delay 1h",
            "release a1 --delay 0.0001",
            "bury l1 --force",
            "ls a b",
            "ls buried --deep",
            "ls -n -1",
            "ls --match [",
            "ls --older-than soon",
            "ls --password-file nowhere",
            "ls --tls-insecure",
            "ls -u http://host",
            "ls -u redis+sentinel://127.0.0.1:1",
            "result",
            "leases -n x",
            "rm",
            "rm --all w1",
            "rm --where a=>3 --yes",
            "edit w1 -f /nowhere/file",
            "edit w1 w2",
            "edit w1 --lines",
            "edit w1 --run cat -f -",
            "edit -",
            "edit --run cat",
            "edit --where n=1",
            "mv --yes w1",
            "purge w1",
            "diff jobs",
            "undo /nowhere/file",
            "export w1 --all",
            "import",
            "show",
            "stats --fast --deep",
            "queues a b",
            "work",
            "wait --below 1 --id a",
            "clean light --grace x",
            "clean light --deep-every 6h",
            "clean light --notify",
            "clean light --every 0",
            "clean light --every 1s --listen ::1:9113",
            "clean light --every 1s --listen 192.0.2.1:1",
            "clean deep extra",
            "doctor --dry-run",
            "completion nothing",
            "ls --fields .a..b",
            "stats --fields .a",
            "leases --state waiting",
            "leases --mine --holder *",
            "nothing",
            "-o",
        ),
        "",
    ),
    "top": "top needs a terminal for stdin, stdout and stderr; use rwq queues --watch 2s\n",
    **{
        f"ls {word}": f"invalid value for '[WHICH]': '{word}' is not one of 'waiting', "
        "'processing', 'leased', 'held', 'abandoned', 'orphaned', 'delayed', 'due', 'buried', "
        f"'all'; did you mean: rwq ls {meant}\n"
        for word, meant in (("wating", "waiting"), ("jobs", "-q jobs"))
    },
    "show -dash": "no such option: -d; for an ID that begins with -: rwq show -- -dash\n",
    "show --an-id": "no such option: --an-id; for an ID that begins with -: rwq show -- --an-id\n",
    "stats -dash": "no such option: -d; see rwq stats --help\n",
    "-q jobs": "missing command; see rwq --help\n",
    **dict.fromkeys(
        ("clean", "clean -q jobs"),
        "missing command; see rwq clean --help\n",
    ),
    "help state": "no command or topic 'state'; try rwq help states\n",
    "help receipts": "no command or topic 'receipts'; try rwq help recipes\n",
    "help recipes x": "recipes is a topic, not a group; leave out x\n",
    "help ls x": "rwq ls has no command 'x'; see rwq ls --help\n",
    "help xyzzy": "no such command 'xyzzy'; see rwq --help\n",
    "touch --state waiting": "this command does not apply to waiting items; --state is one of "
    "leased, held, unlisted\n",
    "doctor --only ghost,gohst": f"no such finding: 'gohst'; known findings: {', '.join(Code)}\n",
    **dict.fromkeys(
        (
            "ls --by colour",
            "undo --list --sort colour",
            "undo --prune --older-than 1d --fields state,colour",
            "work --dry-run --sort colour -- true",
        ),
        "no field 'colour'; ",
    ),
    "ls --fields ,": "--fields names no field; ",
    "leases --by lease": "lease has several fields; use lease_holder or lease_ttl_ms\n",
    **dict.fromkeys(
        (
            "complete a --by id",
            "undo --prune --older-than 1d --sort state",
            "clean light --every 1s --reverse",
        ),
        "--sort, --reverse and --by work only for listings; ",
    ),
    **{
        line: f"IDs and {option} cannot be used together; give IDs, or choose items by options\n"
        for line, option in {
            "touch w1 --state leased": "--state",
            "release - --match x < w1": "--match",
            "complete w1 w2 --match= --id-glob *": "--match",
            "bury - --where a=1 < w1": "--where",
            "kick w1 w2 --id-glob *": "--id-glob",
            "complete w1 --older-than 1h": "--older-than",
            "release w1 -n 0": "-n",
            "touch - --all < w1": "--all",
        }.items()
    },
}
# Command lines on the queue of `fill`.
# What stands before a `;` runs first, what stands after a `<` is stdin.
CODES: dict[ExitStatus, tuple[str, ...]] = {
    ExitStatus.OK: (
        *(LINES[path].replace(" gone", "") for path in sorted(LINES.keys() - NOT_0)),
        "touch l1",
        "kick --match nothing",
        "ls --match nothing",
        "stats -q none",
        "queues none",
        "diff none nothing",
        "complete --match nothing",
        "clean light -q none",
        "purge -q none",
        "rm --yes w1; undo --yes",
        "edit w1 -f - < x",
        "import - < {export}",
        "doctor --only ghost --grace 0",
        "--version",
        "--help",
    ),
    ExitStatus.NO: (
        "add --format jsonl < x",
        "lease -q none",
        "lease --id l1",
        "complete gone",
        "touch w1",
        "release gone",
        "release l1",
        "bury gone",
        "bury l1",
        "kick w1",
        "show gone",
        "result gone",
        "wait --timeout 10ms",
        "export gone",
        "import - < {header}\nx\n",
        "rm --yes w1; add x --id w1; undo --yes",
        "rm --yes gone",
        "edit gone -f - < x",
        "diff jobs none",
        "mv --to other --yes gone",
        "doctor --grace 0",
    ),
    ExitStatus.USAGE: tuple(USAGE),
    ExitStatus.PARTIAL: (
        "work --drain --retries 0 -- false",
        'add --format jsonl < {"data": 1}\nx\n',
        "import - -q none < {export}\nx\n",
        "complete w1 gone",
        "touch l1 w1",
        "lease --id w1 --id gone",
        "release a1 gone",
        "bury a1 l1",
        "show w1 gone",
        "kick b1 gone",
        "rm --yes w1 gone",
        "mv --to other --yes w1 gone",
        "rm --yes w1 a1; add x --id w1; undo --yes",
        "export w1 gone",
    ),
}


# What ends with 69 is in test_contract.py; the file of an undo names its server.
SERVER = {(path, ExitStatus.SERVER) for path in LINES.keys() - WITHOUT_SERVER | {"undo"}}
# Purging fails in part only if others write meanwhile, and `completion` only if it cannot write.
# `completion` and `help` need no server.
RARE = {
    ("purge", ExitStatus.NO),
    ("purge", ExitStatus.PARTIAL),
    ("completion", ExitStatus.NO),
    ("completion", ExitStatus.SERVER),
    ("help", ExitStatus.SERVER),
}


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("status", CODES)
def test_each_command_line_ends_with_its_code(
    rwq: Rwq, foreign: Foreign, status: ExitStatus
) -> None:
    """Where nothing was to be done or an error ended it, nothing is changed."""
    variables = {"XDG_STATE_HOME": str(rwq.home), "EDITOR": "true"}
    fill(foreign)
    export = rwq("export").text
    header = export.partition("\n")[0]
    found = {}
    for text in CODES[status]:
        fill(foreign)
        *before, line = text.split("; ")
        line, _, stdin = line.partition(" < ")
        for words in before:
            assert rwq(*words.split(), variables=variables).code == 0
        keys = contents(foreign.raw)
        given = stdin.replace("{export}", export).replace("{header}", header).encode()
        result = rwq(*line.split(), stdin=given, variables=variables)
        found[text] = result.code
        if status in (ExitStatus.NO, ExitStatus.USAGE):
            assert contents(foreign.raw) == keys, text
        if status is ExitStatus.USAGE and line not in ("", "-o"):
            assert result.text == "", text
            assert result.notes.startswith(f"rwq: error: {USAGE[text]}"), text
            assert re.fullmatch(r"rwq: error: .*[^.]; .*\S.*\n", result.notes), text
            record = json.loads(rwq("-o", "json", *line.split(), stdin=given).err)
            assert record.keys() >= {"error", "code", "hint"}, text
    assert found == dict.fromkeys(CODES[status], int(status))


def test_the_numbers_of_the_codes_are_fixed() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {
        "OK": 0,
        "NO": 1,
        "USAGE": 2,
        "PARTIAL": 3,
        "SERVER": 69,
        "FAULT": 70,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }


def errors_of(base: type[RwqError]) -> set[type[RwqError]]:
    """A class of errors and all that are derived from it."""
    return {base}.union(*(errors_of(kind) for kind in base.__subclasses__()))


def test_each_error_has_its_exit_code() -> None:
    seen: dict[ExitStatus, set[str]] = {status: set() for status in ExitStatus}
    for module in pkgutil.walk_packages(rwq_cli.__path__, "rwq_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind in errors_of(RwqError):
        seen[exit_status_of(kind.__new__(kind))].add(kind.code)
    assert seen == {
        ExitStatus.OK: set(),
        ExitStatus.NO: {
            *("error", "declined", "nothing-to-undo", "undo-file", "undo-file-busy"),
            *("editor", "no-context", "lease-lost"),
        },
        ExitStatus.USAGE: {
            *("invalid-argument", "usage", "context", "read-only-context", "cannot-run"),
        },
        ExitStatus.PARTIAL: {"output"},
        ExitStatus.SERVER: {
            *("server-error", "unreachable", "connection-lost", "authentication-failed"),
            "sentinel-authentication-failed",
            *("permission-denied", "wrong-type", "out-of-memory", "read-only", "loading"),
            *("local-server", "busy", "unavailable", "wrong-node", "script-error"),
            "password-command",
        },
        ExitStatus.FAULT: {"bug"},
        ExitStatus.INTERRUPTED: set(),
        ExitStatus.TERMINATED: set(),
    }


def test_help_promises_the_codes_that_a_command_ends_with() -> None:
    commands = all_commands()
    paths = [command.path for command in commands]
    # See test_program.py and test_streams.py.
    always = (ExitStatus.PARTIAL, ExitStatus.FAULT, ExitStatus.INTERRUPTED, ExitStatus.TERMINATED)
    seen = {(path, status) for path in paths for status in always} | RARE | SERVER
    for status, lines in CODES.items():
        for line in lines:
            run = line.rpartition("; ")[2]
            seen |= {(path, status) for path in paths if f"{run} ".startswith(f"{path} ")}
    promised = {(each.path, status) for each in commands for status in each.manual.all_exits}
    assert {pair for pair in seen ^ promised if pair[0] not in TESTED_ELSEWHERE} == set()
