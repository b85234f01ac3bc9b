"""The second time is as the first: the second run, value, file, context, and outage."""

import re
from collections.abc import Callable

import pytest
import redis

from tests.cli.test_every_stream import alike
from tests.conftest import Foreign
from tests.driver import Rwq, configure
from tests.faults.stage import SOME_TRIALS, Stage, Trial, name_of
from tests.kinds.lines import OPTION_LINES, OptionLine
from tests.kinds.test_options import Runner
from tests.proxies import Line
from tests.verbs import LINES, VERBS, fill, words_of

# Another value of what may be given several times.
SECOND = {
    "--file": "{other}",
    "--id": "w3",
    "--state": "held",
    "--where": "n=2",
    "--warn": "held=0",
    "--critical": "held=0",
    "--unset": "read_only",
}
# What was lost is sent again in fewer sends.
APART = 6
REPEATABLE = [case for case in OPTION_LINES if case.is_repeatable and case.path != "tail"]


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("path", LINES)
def test_a_second_run_in_a_process_is_as_the_first(rwq: Rwq, foreign: Foreign, path: str) -> None:
    results = []
    for _ in range(2):
        fill(foreign)
        configure(rwq.home, "")
        result = alike(rwq(*words_of(path), stdin=VERBS[path].stdin))
        # The width of a column is that of its numbers.
        results.append(re.sub(rb" +", b" ", result[1] + result[2]))
    assert results[0] == results[1]


@pytest.mark.parametrize("case", REPEATABLE, ids=lambda case: f"{case.path} {case.option}")
def test_a_second_value_reaches_what_the_first_does(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], case: OptionLine
) -> None:
    pauses()
    first, value = case.with_option(), SECOND[case.option]
    if case.path == "touch" or case.path == "leases":
        value = "leased"
    both = case._replace(words=f"{case.words} {case.option} {value}").with_option()
    assert Runner(rwq, foreign).differ(case.path, first, both)


def test_a_second_file_is_as_strict_as_the_first(rwq: Rwq, foreign: Foreign) -> None:
    for name, text in {"good": '{"data": 1}\n', "bad": "x\n", "late": '{"data": 2}\n'}.items():
        (rwq.home / name).write_text(text)
    words = [word for name in ("good", "bad", "late") for word in ("-f", str(rwq.home / name))]
    assert rwq("add", "--format", "jsonl", "--strict", *words).code == 3
    assert foreign.raw.llen("jobs:queue") == 1


@pytest.mark.parametrize("how", ["read_only = true", 'protect = "type"'])
def test_a_second_context_of_a_server_protects_it(rwq: Rwq, foreign: Foreign, how: str) -> None:
    fill(foreign)
    url = rwq.variables["RWQ_URL"]
    configure(rwq.home, f'[contexts.a]\nurl = "{url}"\n[contexts.b]\nurl = "{url}"\n{how}\n')
    assert rwq("rm", "w1", "--yes").code == 2
    assert foreign.raw.exists("jobs:item:w1")


@pytest.mark.parametrize("trial", SOME_TRIALS, ids=name_of)
def test_a_second_outage_is_as_the_first(rwq: Rwq, raw: redis.Redis, trial: Trial) -> None:
    """Every client is killed before each of two sends; there may be none of these."""
    stage = Stage(rwq, raw)
    stage.arrange(trial)
    with Line() as whole:
        sends = 0

        def count() -> None:
            nonlocal sends
            sends += 1

        whole.before_send = count
        stage.run(trial)
    for first in range(1, sends - APART):
        stage.arrange(trial)
        sends = 0
        with Line() as line:

            def kill(first: int = first) -> None:
                nonlocal sends
                sends += 1
                if sends in (first, first + APART):
                    raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

            line.before_send = kill
            result = stage.run(trial)
        stage.check(trial, result)
        if trial.done is None:
            assert result.code in (0, 1), result.notes
