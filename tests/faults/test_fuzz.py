"""Random command lines on a queue with an item in every state: only exit codes of the contract.

No traceback, nothing that rwq calls a bug, and no escape sequence from data. `RWQ_FUZZ_SEED` sets
where the lines begin: each is a seed of its own, so that a failure names the line.
"""

import os
import re
from collections import Counter
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryFile
from typing import Any

import pytest
import redis

from rwq_cli.core.repair.findings import Code
from rwq_cli.environment import ColourMode
from rwq_cli.output.options import OutputFormat
from tests.all_commands import all_commands
from tests.conftest import Foreign
from tests.driver import Result, Rwq
from tests.item_cases import ITEM_CASES, STRANGE_IDS
from tests.long import usual

_LINES = usual(200, long=5_000)
_SEED = int(os.environ.get("RWQ_FUZZ_SEED", "0"))
# After so many lines, the queue is as it was.
_LINES_OF_ONE_QUEUE = 8
# What prints tracebacks or escape sequences as it should, reaches for other servers (those that
# `rwq context set` names are enough), or goes on for ever.
_LEFT_OUT = {"--url", "--color", "--debug", "--wait", "--every", "--deep-every", "--watch"} | {
    *("--timeout", "--idle", "--follow", "--listen", "--backoff", "--backoff-max")
}
_COMMANDS = [each for each in all_commands() if each.path.split()[0] not in ("demo", "local")]
# What `rwq work` runs.
_PROGRAMS = (
    *(["true"], ["false"], ["sleep", "0.01"], ["cat"], ["printf", "%s", "{data}"], ["/"], ["x y"]),
    *(["sh", "-c", f"cat >&2; exit {code}"] for code in (3, 75, 100, 127)),
    ["sh", "-c", "kill -9 $$"],
)
_URLS = ("redis://127.0.0.1:1/0", "redis://h:p", "unix:///nowhere", "rediss://h#")
_STRANGE = (
    *("", "-", "--", "x", "0", "1", "-1", "3", "1e3", "nan", "inf", "999999999999999999999"),
    *("1s", "500ms", "-5s", "2d", "1h30m", "now", "2030-01-01", "*", "[a", "item-*", "jobs:x"),
    *("\x1b[2J", "a\nb", "a\tb", "\udcff\udc80", "日本語", "\u202egnp", "a" * 300, "%s", "$(x)"),
    *("size>1", "!x", "kind~^a", "a.b=", "a=1,b=2", "(", "id,state", "buried,due", "none", "{}"),
)
_NAMES = [name.replace(" ", "-") for name in ITEM_CASES]
_IDS = [*_NAMES, *(os.fsdecode(i) for i in STRANGE_IDS), "never", "-"]
_QUEUES = ("jobs", "other", "new", "*", "jo*")
# Good values: of options whose parser takes any text, by their names, and else by what they are.
_CHOICES: dict[str, Any] = {
    "output": OutputFormat,
    "color": ColourMode,
    "state": _NAMES,
    "fields": ("queue,id", "state", "waiting"),
    "sort": ("id", "waiting"),
    "only": Code,
    "skip": Code,
    "queue": _QUEUES,
}
_BY_LABEL = {
    "QUEUE": _QUEUES,
    "PATTERN": _QUEUES,
    "ID": _IDS,
    "SESSION": ("them", "s1", "*"),
    "GLOB": ("them", "s1", "*"),
    "FILE": ("-", "file", "/nowhere/file", "/"),
    "NAME": ("one", "two", "-"),
    "CONTEXT": ("one", "two", "-"),
}
_STDIN = (
    b"",
    b"waiting\nleased\n\xff\xfe\nnone\n",
    b'{"data": "x", "id": "j"}\n{"data":',
    b"\0\n\r\n",
)
# What drives a terminal, also as a byte that is not UTF-8.
_ESCAPE = re.compile("[\x1b\x9b\udc9b]")


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


def word(random: Random, parameter: Any) -> str:
    """A value for an option or an argument: often a good one."""
    if random.random() < 0.12:
        return random.choice(_STRANGE)
    label = (parameter.metavar or "").strip("[].")
    choices = _CHOICES.get(parameter.name) or getattr(parameter.type, "choices", ())
    choices = choices or _BY_LABEL.get(label) or ("1", "10", "5s", "0", "x", "id", *_STRANGE)
    return random.choice(list(choices))


def line_of(random: Random) -> list[str]:
    """Work four times as often as any other."""
    weights = [4.0 if each.path == "work" else 1.0 for each in _COMMANDS]
    (chosen,) = random.choices(_COMMANDS, weights)
    path = chosen.path.split()
    parameters = chosen.command.params
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [p for p in parameters if p not in arguments and not _LEFT_OUT & {*p.opts}]
    words: list[str] = []
    for option in random.sample(options, random.randint(0, 3)):
        words.append(random.choice((*option.opts, *option.secondary_opts)))
        if not option.is_flag:
            words.append(word(random, option))
    match path:
        case ["work"]:
            ends = ("--drain", "--drain --max 2", "--drain --max-failures 1", "--dry-run")
            return ["work", *words, *random.choice(ends).split(), "--", *random.choice(_PROGRAMS)]
        case ["help"]:
            about = random.choice(_COMMANDS).path.split()
            words += random.choice((about, about[:1], ["states"], ["x"], []))
        case ["context", "set"]:
            words += ["-u", random.choice(_URLS)]
        case ["wait"] | ["tail"]:
            words += ["--timeout", random.choice(("0.001", "x"))]
    for argument in arguments:
        count = random.randint(0, 3) if argument.nargs == -1 else random.randint(0, 1)
        words += [word(random, argument) for _ in range(count)]
    if random.random() < 0.6 and path[0] in ("rm", "mv", "purge", "edit", "release"):
        words.append("--yes")
    if random.random() < 0.05 and path != ["wait"]:
        random.shuffle(words)
    return [*path, *words]


def check(words: list[str], result: Result) -> None:
    assert result.code in ({0, 1, 2, 3} if words[0] == "check" else {0, 1, 2, 3, 69})
    for text in (result.out, result.err):
        assert b"Traceback" not in text
        assert b"bug in rwq" not in text
    # Bytes as they are, for programs; and what programs print.
    if words[0] == "work" and {*words} & {"cat", "printf", "sh"}:
        return
    raw_output = {*words} & {"data", "--null", "-0"}
    for text in (result.err,) if raw_output else (result.out, result.err):
        assert not _ESCAPE.search(text.decode("utf-8", "surrogateescape"))


def restore(raw: redis.Redis, dumped: list[tuple[bytes, int, bytes]], home: Path) -> None:
    """The queue as it was, and no files."""
    pipeline = raw.pipeline(transaction=False)
    pipeline.flushall()
    for key, left_ms, value in dumped:
        pipeline.restore(key, left_ms, value)
    pipeline.execute()
    for path in home.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.usefixtures("slept_s")
def test_every_line_ends_with_a_code_of_the_contract(
    rwq: Rwq,
    raw: redis.Redis,
    dumped: list[tuple[bytes, int, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: Counter[tuple[str, int]] = Counter()
    monkeypatch.chdir(rwq.home)
    for seed in range(_SEED, _SEED + _LINES):
        random = Random(seed)
        words, stdin = line_of(random), random.choice(_STDIN)
        if seed % _LINES_OF_ONE_QUEUE == 0:
            restore(raw, dumped, rwq.home)
        try:
            with TemporaryFile() as stdout:
                result = rwq(*words, stdin=stdin, variables={"EDITOR": "true"}, stdout=stdout)
                stdout.seek(0)
                check(words, Result(result.code, stdout.read(), result.err))
        except BaseException:
            print(f"RWQ_FUZZ_SEED={seed}: {words}")
            raise
        codes[words[0], result.code] += 1
    print({name: {c: n for (w, c), n in sorted(codes.items()) if w == name} for name, _ in codes})
    assert {code for _, code in codes} >= {0, 1, 2}
