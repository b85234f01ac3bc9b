"""The line is cut at a byte of every trial on fifty items, or the trial is killed there or later.

Usually at a few bytes of each; with `--long` at every tenth, each on one server, behind Sentinel,
on a cluster and between two servers. A killed verb runs in a fork of this process, which has loaded
everything: starting a program takes longer than the verb.
"""

import io
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import pytest

from rwq_cli.cli.program import run
from rwq_cli.environment import Environment
from tests.driver import until
from tests.faults.stage import (
    MOVE_TO_ANOTHER_SERVER,
    MOVE_TO_ANOTHER_SLOT,
    SOME_TRIALS,
    TRIALS,
    Stage,
    Trial,
    name_of,
)
from tests.long import usual
from tests.proxies import Line

_EVERY = usual(0, long=10)
_CASES = (
    *(("server", trial) for trial in TRIALS),
    *(("sentinel", trial) for trial in SOME_TRIALS),
    *(("cluster", trial) for trial in (*SOME_TRIALS, MOVE_TO_ANOTHER_SLOT)),
    ("servers", MOVE_TO_ANOTHER_SERVER),
)


def marks(kind: str, trial: Trial) -> list[pytest.MarkDecorator]:
    """Those on one kind of server run in one process, so that it is started once."""
    # That the connection goes the same way there is seen by fewer.
    is_known = kind in ("sentinel", "cluster") and trial in SOME_TRIALS
    group = pytest.mark.xdist_group(kind)
    return [*([pytest.mark.ci] if is_known else []), *([group] if kind != "server" else [])]


def cuts(kind: str, trial: Trial, side: str, length: int) -> Iterable[int]:
    """After which bytes to cut: by default some in the last call, which acts.

    Of its request one is as good as any: the server does not do what it has not read to the end.
    """
    if _EVERY:
        return range(0, length, _EVERY)
    if kind == "servers":
        # Every step of it acts.
        return range(length // 12, length, length // 12)
    if trial.done is None:
        return [length // 2]
    if kind != "server":
        return [max(0, length - 30)]
    from_end = (1,) if side == "up" else (150, 30, 1)
    return sorted({length // 3, *(length - back for back in from_end if back <= length)})


@pytest.mark.parametrize(
    ("kind", "trial"),
    [
        pytest.param(kind, trial, id=f"{kind}: {name_of(trial)}", marks=marks(kind, trial))
        for kind, trial in _CASES
    ],
)
def test_a_cut_loses_nothing_and_is_reported(
    stage_on: Callable[[str], Stage], kind: str, trial: Trial
) -> None:
    stage = stage_on(kind)
    stage.arrange(trial)
    # From now on the server has the scripts, so that every run has the same lengths.
    stage.run(trial)
    stage.arrange(trial)
    with Line() as whole:
        result = stage.run(trial)
    assert stage.check(trial, result) == "done"
    counts: Counter[str] = Counter()
    for side in ("up", "down"):
        for after_bytes in cuts(kind, trial, side, whole.passed[side]):
            stage.arrange(trial)
            with Line(side, after_bytes) as line:
                result = stage.run(trial)
            try:
                counts[stage.check(trial, result) if line.is_cut else "too short"] += 1
            except AssertionError:
                print(f"cut {side} after {after_bytes} of {whole.passed[side]} bytes")
                raise
    print(kind, name_of(trial), dict(counts), whole.passed)


_KILLS = usual(2, long=30)
_ACTING = [trial for trial in TRIALS if trial.done is not None]


class Killed:
    """A trial in a fork."""

    def __init__(self, stage: Stage, trial: Trial) -> None:
        self._stage = stage
        self._verb = trial
        self._out = stage.home / "out"

    def at_byte(self, side: str, after_bytes: int) -> int:
        """Kill it when so much has passed; returns its exit status."""
        line = Line(side, after_bytes)
        line.on_cut = lambda: os.kill(os.getpid(), signal.SIGKILL)
        return self._wait(self._fork(line))

    def after(self, seconds: float) -> int:
        """Kill it so long after its start."""
        child = self._fork(Line())
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        return self._wait(child)

    def _fork(self, line: Line) -> int:
        child = os.fork()
        if child:
            return child
        try:
            with self._out.open("wb") as out, line:
                environment = Environment(
                    dict(self._stage.rwq.variables),
                    io.BytesIO(self._stage.stdin(self._verb)),
                    out,
                    io.BytesIO(),
                )
                code = int(run(self._stage.words(self._verb), environment))
                out.flush()
                os._exit(code)
        finally:
            os._exit(99)

    def _wait(self, child: int) -> int:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    @property
    def out(self) -> bytes:
        """What it had printed."""
        return self._out.read_bytes()


@pytest.mark.parametrize(
    ("kind", "trial"),
    [*(("server", trial) for trial in _ACTING), ("servers", MOVE_TO_ANOTHER_SERVER)],
    ids=lambda each: each if isinstance(each, str) else name_of(each),
)
def test_a_killed_verb_loses_nothing(
    stage_on: Callable[[str], Stage], kind: str, trial: Trial
) -> None:
    stage = stage_on(kind)
    raw = stage.raw
    random = Random(trial.words)
    for _ in range(2):
        stage.arrange(trial)
        begun = time.monotonic()
        with Line() as whole:
            stage.run(trial)
        lasts_s = time.monotonic() - begun
    ends: Counter[str] = Counter()
    for number in range(5 * _KILLS if kind == "servers" else _KILLS):
        stage.arrange(trial)
        (stage.home / "out").write_bytes(b"")
        known = {client["id"] for client in raw.client_list()}
        killed = Killed(stage, trial)
        if number % 2:
            code = killed.after(random.uniform(lasts_s, 3 * lasts_s))
        else:
            # Near the end, where the call is that acts: within it, or within its reply.
            side = random.choice(("up", "down", "down"))
            length = whole.passed[side]
            first = 0 if kind == "servers" else max(0, length - 200)
            code = killed.at_byte(side, random.randrange(first, length))
        until(lambda known=known: {client["id"] for client in raw.client_list()} <= known)
        assert code in (0, -signal.SIGKILL)
        done = stage.done(trial)
        stage.check_keys(trial, killed.out)
        ends["it ended before" if code == 0 else "done" if done else "nothing done"] += 1
    print(name_of(trial), dict(ends))
