"""Random command lines on a queue with an item in every state: only exit codes of the contract.

No traceback, nothing that rwq calls a bug, and no escape sequence from data. `RWQ_FUZZ` sets how
many lines there are, and `RWQ_FUZZ_SEED` where they begin: each is a seed of its own, so that a
failure names the line. The last 100,000 found nothing.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from shutil import rmtree

import pytest
import redis

from rwq_cli.completion.spec import Command, Kind, Parameter, collect
from tests.conftest import Foreign
from tests.driver import Result, Rwq
from tests.item_cases import ITEM_CASES, STRANGE_IDS

_LINES = int(os.environ.get("RWQ_FUZZ", "200"))
_SEED = int(os.environ.get("RWQ_FUZZ_SEED", "0"))
# After so many lines, the queue is as it was.
_LINES_OF_ONE_QUEUE = 8
_COMMANDS = frozenset(
    (
        *("add", "lease", "complete", "result", "touch", "release", "bury", "kick", "edit", "set"),
        *("rm", "mv", "purge", "undo", "ls", "leases", "show", "stats", "queues", "wait", "clean"),
        *("doctor", "check", "export", "import", "help", "completion"),
    )
)
# What waits, goes on for ever, reaches for other servers or writes files somewhere.
_LEFT_OUT = frozenset(
    (
        *("--wait", "--every", "--deep-every", "--watch", "--listen", "--notify", "--install"),
        *("--url", "--context", "--dir", "--color", "--debug", "--timeout", "--patience"),
        *("--connect-timeout", "--reply-timeout", "--password-file", "--help", "--out"),
        *("--tls-ca", "--tls-cert", "--tls-key", "--tls-insecure"),
    )
)
_STRANGE = (
    *("", "-", "--", "x", "0", "1", "-1", "3", "1e3", "nan", "inf", "999999999999999999999"),
    *("1s", "500ms", "-5s", "2d", "1h30m", "now", "2030-01-01", "*", "[a", "item-*", "jobs:x"),
    *("\x1b[2J", "a\nb", "a\tb", "\udcff\udc80", "日本語", "\u202egnp", "a" * 300, "%s", "$(x)"),
    *("size>1", "!x", "kind~^a", "a.b=", "a=1,b=2", "(", "id,state", "buried,due", "none", "{}"),
)
# Each command with the options that it takes.
Commands = list[tuple[Command, list[Parameter]]]
_STDIN = (
    b"",
    b"waiting\nleased\n\xff\xfe\nnone\n",
    b'{"data": "x", "id": "j"}\n{"data":',
    b"\0\n\r\n",
)
# What drives a terminal, also as a byte that is not UTF-8.
_ESCAPE = re.compile("[\x1b\x9b\udc9b]")


@pytest.fixture(scope="module")
def commands() -> Commands:
    """The commands, each with the options that it takes."""
    spec = collect()
    taken = [command for command in spec.commands if command.path[:1] and not command.commands]
    return [
        (command, [o for o in (*command.options, *spec.common) if not _LEFT_OUT & {*o.names}])
        for command in taken
        if command.path[0] in _COMMANDS and not command.is_subject
    ]


@pytest.fixture
def dumped(foreign: Foreign) -> list[tuple[bytes, int, bytes]]:
    """A queue with an item in every state: each key, its ms to live or 0, and its value."""
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.replace(" ", "-").encode())
    foreign.waiting(*STRANGE_IDS)
    raw = foreign.raw
    for item_id in STRANGE_IDS:
        raw.set(foreign.keys.item(item_id), b"\x1b]0;title\x07\xff\x9b2J[red]" + item_id)
    raw.set(foreign.keys.item(b"waiting"), b'{"kind": "img", "size": 7, "a": [1, {"b": null}]}')
    raw.hset(
        "jobs:result:done", mapping={"status": "completed", "completed_ms": 5, "result": "\x1b"}
    )
    raw.lpush("other:queue", "x")
    raw.set("other:item:x", "x")
    keys = sorted(raw.scan_iter())
    return [(key, max(0, raw.pttl(key)), raw.dump(key)) for key in keys]


def word(random: Random, parameter: Parameter, ids: list[str]) -> str:
    """A value for an option or an argument: often a good one."""
    if random.random() < 0.12:
        return random.choice(_STRANGE)
    match parameter.kind:
        case Kind.CHOICES:
            return random.choice(parameter.choices)
        case Kind.LIST:
            return ",".join(random.sample(parameter.choices, min(2, len(parameter.choices))))
        case Kind.QUEUE:
            return random.choice(("jobs", "other", "new", "*", "jo*"))
        case Kind.ITEM:
            return random.choice(ids)
        case Kind.HOLDER:
            return random.choice(("them", "s1", "*"))
        case Kind.FILE | Kind.UNDO_FILE | Kind.DIRECTORY:
            return random.choice(("-", "file", "/nowhere/file", "/"))
        case _:
            return random.choice(("1", "10", "5s", "0", "x", "id", random.choice(_STRANGE)))


def line_of(random: Random, commands: Commands, ids: list[str]) -> list[str]:
    command, options = random.choice(commands)
    words: list[str] = []
    for option in random.sample(options, random.randint(0, 3)):
        words.append(random.choice(option.names))
        if option.takes_value:
            words.append(word(random, option, ids))
    for argument in command.arguments:
        count = random.randint(0, 3) if argument.repeatable else random.randint(0, 1)
        words += [word(random, argument, ids) for _ in range(count)]
    if command.path == ("wait",):
        words += ["--timeout", random.choice(("0", "0.001", "x"))]
    if random.random() < 0.6 and command.path[0] in ("rm", "mv", "purge", "set", "release"):
        words.append("--yes")
    if random.random() < 0.05:
        random.shuffle(words)
    return [*command.path, *words]


def lines(
    commands: list[tuple[Command, list[Parameter]]],
) -> Iterator[tuple[int, list[str], bytes]]:
    names = [name.replace(" ", "-") for name in ITEM_CASES]
    ids = [*names, *(os.fsdecode(i) for i in STRANGE_IDS), "never", "-"]
    for seed in range(_SEED, _SEED + _LINES):
        random = Random(seed)
        yield seed, line_of(random, commands, ids), random.choice(_STDIN)


def check(words: list[str], result: Result) -> None:
    assert result.code in ((0, 1, 2, 3) if words[0] == "check" else (0, 1, 2, 3, 69))
    for text in (result.out, result.err):
        assert b"Traceback" not in text
        assert b"bug in rwq" not in text
    # Bytes as they are, for programs.
    raw_output = {*words} & {"data", "--null", "-0"}
    for text in (result.err,) if raw_output else (result.out, result.err):
        assert not _ESCAPE.search(text.decode("utf-8", "surrogateescape"))


@pytest.mark.usefixtures("slept_s")
def test_every_line_ends_with_an_exit_code_of_the_contract(
    rwq: Rwq,
    raw: redis.Redis,
    dumped: list[tuple[bytes, int, bytes]],
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: Counter[tuple[str, int]] = Counter()
    monkeypatch.chdir(rwq.home)
    for seed, words, stdin in lines(commands):
        if seed % _LINES_OF_ONE_QUEUE == 0:
            pipeline = raw.pipeline(transaction=False)
            pipeline.flushall()
            for key, left_ms, value in dumped:
                pipeline.restore(key, left_ms, value)
            pipeline.execute()
            rmtree(rwq.home / ".local", ignore_errors=True)
        try:
            result = rwq(*words, stdin=stdin, variables={"EDITOR": "true"})
            check(words, result)
        except BaseException:
            print(f"RWQ_FUZZ_SEED={seed}: {words}")
            raise
        codes[words[0], result.code] += 1
    print({name: {c: n for (w, c), n in sorted(codes.items()) if w == name} for name, _ in codes})
    assert {code for _, code in codes} >= {0, 1, 2}
