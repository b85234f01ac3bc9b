"""A pytest plugin that writes each cell that fails to a file, as it fails, and ends one that hangs.

What a fault makes hang is so named, and the cells that failed before that are known.
"""

import json
import os
import signal
from collections.abc import Generator
from typing import Any

import pytest

# The file, and how long one cell may take, seconds.
FILE, CELL_S = "RWQ_MUTANT_FILE", "RWQ_MUTANT_CELL_S"


class CellHangs(BaseException):
    """One cell took too long; no `except Exception` of a test may keep it."""


def _write(**fields: Any) -> None:
    with open(os.environ[FILE], "a") as file:
        file.write(json.dumps(fields) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    # Processes of xdist report to the one that started them.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter())


class _Reporter:
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _write(started=nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        _write(finished=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        _write(cell=report.nodeid, failed=report.failed)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            _write(cell=report.nodeid, failed=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    def hangs(*_: object) -> None:
        raise CellHangs(f"it took more than {os.environ[CELL_S]} s")

    before = signal.signal(signal.SIGALRM, hangs)
    # Again and again: the end of a test may hang, too.
    signal.setitimer(signal.ITIMER_REAL, float(os.environ[CELL_S]), 5.0)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
