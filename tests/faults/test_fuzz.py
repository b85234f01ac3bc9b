"""Random command lines on a queue with an item in every state: only exit codes of the contract.

No traceback, nothing that rwq calls a bug, and no escape sequence from data. What goes on for ever
is interrupted. `RWQ_FUZZ_SEED` sets where the lines begin: each is a seed of its own, so that a
failure names the line.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryFile
from types import FrameType
from typing import Any

import pytest
import redis

from rwq_cli.commands import demo
from rwq_cli.core.repair.findings import Code
from rwq_cli.environment import ColourMode
from rwq_cli.output.options import OutputFormat
from tests.all_commands import CommandInfo, all_commands
from tests.conftest import Foreign
from tests.driver import Result, Rwq
from tests.item_cases import ITEM_CASES, STRANGE_IDS
from tests.long import usual

_LINES = usual(200, long=5_000)
_SEED = int(os.environ.get("RWQ_FUZZ_SEED", "0"))
# After so many lines, the queue is as it was.
_LINES_OF_ONE_QUEUE = 8
# What prints tracebacks or escape sequences as it should, or reaches for other servers: those that
# `rwq context set` names are enough.
_LEFT_OUT = frozenset(("--url", "--color", "--debug"))
# A line with one of these may go on for ever: it is interrupted.
_ENDLESS = frozenset(
    ("--wait", "--every", "--deep-every", "--watch", "--timeout", "--idle", "work", "wait")
)
_ENDED_AFTER_S = 0.15
# Any other line that takes so long hangs.
_HANGS_AFTER_S = 60.0
# What `rwq work` runs.
_PROGRAMS = (
    *(["true"], ["false"], ["sleep", "0.01"], ["cat"], ["printf", "%s", "{data}"], ["/"], ["x y"]),
    *(["sh", "-c", f"cat >&2; exit {code}"] for code in (3, 75, 100, 127)),
    ["sh", "-c", "kill -9 $$"],
)
# These may be created: all are in the home of the test, or cannot be.
_DIRECTORIES = ("here", "here/it", "-", "\x1b[2Jd", "file", "/dev/null/x", "d" * 200)
_URLS = ("redis://127.0.0.1:1/0", "redis://h:p", "unix:///nowhere", "local:here", "rediss://h#")
# Common, and not too often; `rwq demo` takes half a second.
_WEIGHTS = {"work": 4.0, "demo": 0.2}
_STRANGE = (
    *("", "-", "--", "x", "0", "1", "-1", "3", "1e3", "nan", "inf", "999999999999999999999"),
    *("1s", "500ms", "-5s", "2d", "1h30m", "now", "2030-01-01", "*", "[a", "item-*", "jobs:x"),
    *("\x1b[2J", "a\nb", "a\tb", "\udcff\udc80", "日本語", "\u202egnp", "a" * 300, "%s", "$(x)"),
    *("size>1", "!x", "kind~^a", "a.b=", "a=1,b=2", "(", "id,state", "buried,due", "none", "{}"),
)
# The values of options whose parser takes any text, by their names.
_CHOICES = {
    "output": OutputFormat,
    "color": ColourMode,
    "state": [name.replace(" ", "-") for name in ITEM_CASES],
    "fields": ("queue,id", "state", "waiting"),
    "sort": ("id", "waiting"),
    "only": Code,
    "skip": Code,
}
_STDIN = (
    b"",
    b"waiting\nleased\n\xff\xfe\nnone\n",
    b'{"data": "x", "id": "j"}\n{"data":',
    b"\0\n\r\n",
)
# What drives a terminal, also as a byte that is not UTF-8.
_ESCAPE = re.compile("[\x1b\x9b\udc9b]")


@pytest.fixture(scope="module")
def commands() -> list[CommandInfo]:
    return all_commands()


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


def word(random: Random, parameter: Any, ids: list[str]) -> str:
    """A value for an option or an argument: often a good one."""
    label = (parameter.metavar or "").strip("[].")
    if label == "DIR":
        return random.choice(_DIRECTORIES)
    if random.random() < 0.12:
        return random.choice(_STRANGE)
    choices = _CHOICES.get(parameter.name) or getattr(parameter.type, "choices", ())
    if choices:
        return random.choice(list(choices))
    match label:
        case "QUEUE" | "PATTERN":
            return random.choice(("jobs", "other", "new", "*", "jo*"))
        case "ID":
            return random.choice(ids)
        case "SESSION" | "GLOB":
            return random.choice(("them", "s1", "*"))
        case "FILE":
            return random.choice(("-", "file", "/nowhere/file", "/"))
        case "NAME" if parameter.name == "queue":
            return random.choice(("jobs", "other", "new", "*", "jo*"))
        case "NAME" | "CONTEXT":
            return random.choice(("one", "two", "-"))
        case _:
            return random.choice(("1", "10", "5s", "0", "x", "id", random.choice(_STRANGE)))


def line_of(random: Random, commands: list[CommandInfo], ids: list[str]) -> list[str]:
    weights = [_WEIGHTS.get(command.path, 1.0) for command in commands]
    (chosen,) = random.choices(commands, weights)
    path = tuple(chosen.path.split())
    parameters = chosen.command.params
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [
        each for each in parameters if each not in arguments and not _LEFT_OUT & {*each.opts}
    ]
    words: list[str] = []
    for option in random.sample(options, random.randint(0, 3)):
        words.append(random.choice((*option.opts, *option.secondary_opts)))
        if not option.is_flag:
            words.append(word(random, option, ids))
    match path:
        case ("work",):
            ends = ("--drain", "--max 2", "--idle 0.01", "--max-failures 1", "--dry-run")
            words += random.choice(ends).split()
            return ["work", *words, "--", *random.choice(_PROGRAMS)]
        case ("help",):
            about = tuple(random.choice(commands).path.split())
            words += random.choice((about, about[:1], ("states",), ("x",), ()))
        case ("context", "set"):
            words += ["-u", random.choice(_URLS)]
        case ("wait",) | ("result",) | ("lease",):
            words += random.choice((["--timeout", "0.001"], ["--timeout", "x"], []))
    for argument in arguments:
        count = random.randint(0, 3) if argument.nargs == -1 else random.randint(0, 1)
        words += [word(random, argument, ids) for _ in range(count)]
    if random.random() < 0.6 and path[0] in ("rm", "mv", "purge", "edit", "release"):
        words.append("--yes")
    if random.random() < 0.05:
        random.shuffle(words)
    return [*path, *words]


def lines(commands: list[CommandInfo]) -> Iterator[tuple[int, list[str], bytes]]:
    names = [name.replace(" ", "-") for name in ITEM_CASES]
    ids = [*names, *(os.fsdecode(i) for i in STRANGE_IDS), "never", "-"]
    for seed in range(_SEED, _SEED + _LINES):
        random = Random(seed)
        yield seed, line_of(random, commands, ids), random.choice(_STDIN)


def may_be_endless(words: list[str]) -> bool:
    return any(word.partition("=")[0] in _ENDLESS for word in words)


def check(words: list[str], result: Result) -> None:
    codes = {0, 1, 2, 3} if words[0] == "check" else {0, 1, 2, 3, 69}
    assert result.code in (codes | {130} if may_be_endless(words) else codes)
    for text in (result.out, result.err):
        assert b"Traceback" not in text
        assert b"bug in rwq" not in text
    # Bytes as they are, for programs; and what programs print.
    if words[0] == "work" and {*words} & {"cat", "printf", "sh"}:
        return
    raw_output = {*words} & {"data", "--null", "-0"}
    for text in (result.err,) if raw_output else (result.out, result.err):
        assert not _ESCAPE.search(text.decode("utf-8", "surrogateescape"))


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Press Ctrl-C after this time, and again and again."""
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def press_ctrl_c(_number: int, frame: FrameType | None) -> None:
    """Not in a finalizer, where it would be lost: there is another one soon."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    if frame is None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def signals() -> Iterator[None]:
    """An alarm is a Ctrl-C; all handlers are as they were afterwards."""
    numbers = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGALRM, press_ctrl_c)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Fuzzed:
    """rwq, with what its lines leave behind."""

    def __init__(self, rwq: Rwq, raw: redis.Redis, dumped: list[tuple[bytes, int, bytes]]) -> None:
        self._rwq = rwq
        self._raw = raw
        self._dumped = dumped
        self._starts: list[list[str]] = []

    @property
    def home(self) -> Path:
        return self._rwq.home

    def restore(self) -> None:
        """The queue as it was, no files, and no local servers."""
        self.stop()
        pipeline = self._raw.pipeline(transaction=False)
        pipeline.flushall()
        for key, left_ms, value in self._dumped:
            pipeline.restore(key, left_ms, value)
        pipeline.execute()
        for path in self.home.iterdir():
            rmtree(path) if path.is_dir() else path.unlink()

    def stop(self) -> None:
        """Stop the local servers, also that of a context."""
        for _, _, *words in (*self._starts, ["local", "start", "here"]):
            assert self._rwq("local", "stop", *words).code in (0, 1, 2, 69)
        self._starts.clear()

    def run(self, words: list[str], stdin: bytes) -> Result:
        if words[:2] == ["local", "start"]:
            self._starts.append(words)
        limit_s = _ENDED_AFTER_S if may_be_endless(words) else _HANGS_AFTER_S
        # The commands of the demo need a real one.
        try:
            with TemporaryFile() as stdout, interrupted_after(limit_s):
                result = self._rwq(*words, stdin=stdin, variables={"EDITOR": "true"}, stdout=stdout)
                stdout.seek(0)
                return Result(result.code, stdout.read(), result.err)
        except KeyboardInterrupt:
            # A second one, while the first was handled; `main` does the same.
            return Result(130, b"", b"")


@pytest.fixture
def fuzzed(rwq: Rwq, raw: redis.Redis, dumped: list[tuple[bytes, int, bytes]]) -> Iterator[Fuzzed]:
    made = Fuzzed(rwq, raw, dumped)
    yield made
    made.stop()


@pytest.mark.usefixtures("slept_s", "signals")
def test_every_line_ends_with_an_exit_code_of_the_contract(
    fuzzed: Fuzzed, commands: list[CommandInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: Counter[tuple[str, int]] = Counter()
    monkeypatch.chdir(fuzzed.home)
    # The whole tour takes seconds.
    monkeypatch.setattr(demo, "_STEPS", demo._STEPS[:2])
    for seed, words, stdin in lines(commands):
        if seed % _LINES_OF_ONE_QUEUE == 0:
            fuzzed.restore()
        try:
            result = fuzzed.run(words, stdin)
            check(words, result)
        except BaseException:
            print(f"RWQ_FUZZ_SEED={seed}: {words}")
            raise
        codes[words[0], result.code] += 1
    print({name: {c: n for (w, c), n in sorted(codes.items()) if w == name} for name, _ in codes})
    assert {code for _, code in codes} >= {0, 1, 2}
