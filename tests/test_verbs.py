"""A new verb needs a row in `tests/verbs.py`, and nothing else: these tests say what it lacks."""

import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction, signature
from pkgutil import iter_modules
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue, items
from rwq_cli.core.lua import command_groups, header_of
from rwq_cli.core.repair.clean import clean
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.server import commands
from rwq_cli.exit_codes import ExitStatus
from tests.conftest import QUEUE, FakeClock, Foreign
from tests.driver import Rwq
from tests.faults.stage import Stage, name_of
from tests.support import numbered
from tests.verbs import COMMANDS, OPERATIONS, TRIALS, VERBS, Trial

A_ROW = """
tests/verbs.py has no row for {missing}. Add one to VERBS, with lines on the queue of `fill`:
    "NAME": Row(
        "NAME w1 --yes",                  # what it does, without a question
        no=("NAME gone",),                # a line for each exit code that its help promises
        partial=("NAME w1 gone",),
        usage=_refused("NAME"),
        counts="...",                     # the names in the summary of -o json
        trials=(Trial("NAME - -o ids", "waiting", DONE, names=True),),
        operations={{"NAME": outcomes(FUNCTION)}},
    ),
"""
# See test_program.py and test_streams.py.
ALWAYS = (ExitStatus.FAULT, ExitStatus.INTERRUPTED, ExitStatus.TERMINATED)


def operations_of_the_core() -> Iterator[Any]:
    """The functions of the core that can do a dry run on a queue."""
    yield from (clean, diagnose)
    for module in iter_modules(items.__path__, f"{items.__name__}."):
        if module.name.endswith(".repairs"):
            # What those are made of.
            continue
        for name, function in vars(import_module(module.name)).items():
            if isfunction(function) and not name.startswith(("_", "prune_")):
                parameters = signature(function).parameters
                if "dry_run" in parameters and next(iter(parameters)) == "queue":
                    yield function


def test_every_verb_has_a_row(foreign: Foreign, connection: Connection) -> None:
    """With its operations; no other test fails for a verb without one."""
    assert (missing := COMMANDS.keys() - VERBS.keys()) == set(), A_ROW.format(missing=missing)
    assert VERBS.keys() == COMMANDS.keys(), "a row of tests/verbs.py has no command"
    called, ids = set[Any](), numbered(60)
    for operation in OPERATIONS.values():
        foreign.raw.flushall()
        foreign.waiting(*ids)
        sys.setprofile(lambda frame, *_: called.add(frame.f_code))
        try:
            operation.run(WorkQueue(connection, QUEUE, clock=FakeClock()), ids, True)
        finally:
            sys.setprofile(None)
    uncalled = {each for each in operations_of_the_core() if each.__code__ not in called}
    assert uncalled == set(), "name them in `operations` of the rows in tests/verbs.py"


@pytest.mark.parametrize("path", VERBS)
def test_a_row_has_what_its_verb_promises(path: str) -> None:
    row, manual = VERBS[path], COMMANDS[path].manual
    assert bool(row.trials) or bool(row.untried) or manual.reads_only, (
        "it changes items: name `trials`, or why there are none in `untried`"
    )
    if row.elsewhere:
        return
    proved = {status for status, lines in row.lines().items() if lines}
    proved |= {*ALWAYS, *(row.unproved or {}), ExitStatus.PARTIAL}
    # What ends with 69 is in test_contract.py; the file of an undo names its server.
    proved |= set() if row.is_local and path != "undo" else {ExitStatus.SERVER}
    assert proved == {*manual.all_exits}, "a line for each exit code of its help, and no other"


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("trial", [trial for trial in TRIALS if trial.done], ids=name_of)
def test_the_scripts_of_a_verb_name_it(
    rwq: Rwq, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    """For `rwq context check`: a script that writes says in its header which commands run it."""
    names: set[str] = set()
    load = commands.load_script
    stage = Stage(rwq, raw)
    stage.arrange(trial)
    monkeypatch.setattr(commands, "load_script", lambda name: names.add(name) or load(name))
    stage.run(trial)
    path = next(path for path in VERBS if f"{trial.words} ".startswith(f"{path} "))
    groups = {
        group
        for command, groups in command_groups().items()
        if f"{command} ".startswith(f"{path} ")
        for group in groups
    }
    # By its own name, or by that of the group that a call checks.
    needs = {n: {group or f"ops/{n}" for group in header_of(f"ops/{n}").writes} for n in names}
    without = {name for name, needed in needs.items() if needed and not needed & groups}
    assert without == set(), f"-- commands: {path} in the headers of these scripts"
