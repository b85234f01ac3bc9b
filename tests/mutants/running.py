"""Running parts of the suite in copies of the tree, and what each fault made fail."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Lock

from tests.mutants import plugin, tree
from tests.mutants.faults import Fault

# What finds most faults in little time: folders, files, or some cells of one. The model alone finds
# half of those in the core.
FAST: dict[str, tuple[str, ...]] = {
    "model": ("tests/model/test_model.py::test_our_scripts_do_in_every_state_what_the_model_says",),
    "core": (
        "tests/core/test_dry_runs.py::test_a_dry_run_of_one_of_each_kind_says_what_the_run_does",
        "tests/core/test_dry_runs.py::test_no_dry_run_counts_as_use",
        "tests/core/inspect/test_counting.py",
        "tests/core/inspect/test_listing.py",
        "tests/core/items/test_add.py",
        "tests/core/items/test_expected.py",
        "tests/core/items/test_results.py",
        "tests/core/items/test_lease.py",
        "tests/core/items/test_restore.py",
        "tests/core/items/test_set_data.py",
        "tests/core/items/test_waiting.py",
        "tests/core/repair/test_lock.py",
        "tests/core/server/test_urls.py",
        "tests/core/server/test_window.py",
        "tests/core/test_keys.py",
        "tests/core/work/test_policy.py",
        "tests/commands/test_bury.py",
        "tests/commands/test_clean.py",
        "tests/commands/test_complete.py",
        "tests/commands/test_edit_run.py",
    ),
    "commands": (
        "tests/cli/test_confirm.py",
        "tests/cli/test_contract.py",
        "tests/cli/test_exit_codes.py",
        "tests/commands/test_check.py",
        "tests/output/test_escape.py",
        "tests/output/test_fields.py",
        "tests/output/test_field.py",
        "tests/output/test_formats.py",
        "tests/output/test_quiet.py",
    ),
    "states": (
        "tests/core/lua/test_state.py",
        "tests/live/test_state_machine.py",
    ),
    "server": (
        "tests/core/test_batches.py",
        "tests/core/inspect/test_lookup.py",
        "tests/core/inspect/test_agreement.py",
        "tests/core/server/test_push_waiter.py",
        "tests/core/server/test_patience.py::test_a_refusal_that_passes_is_waited_for_on_a_new_connection",
        "tests/core/server/test_patience.py::test_a_write_whose_reply_is_lost_is_never_sent_again",
        "tests/core/server/test_patience.py::test_a_read_whose_reply_is_lost_is_sent_again_once",
    ),
    "cluster": ("tests/cluster/test_cluster.py::test_nothing_runs_half_while_a_slot_moves",),
    "streams": (
        "tests/cli/test_every_stream.py::test_all_that_is_written_arrives_or_is_an_error[export]",
        "tests/cli/test_every_stream.py::TestStdin",
        "tests/cli/test_every_stream.py::test_an_undo_file_without_room_says_what_was_removed",
    ),
    "undo": ("tests/undo/test_undo.py",),
    "work": ("tests/cli/work/test_exits.py", "tests/core/work/test_session.py"),
}
# The set that found a fault last looks first; where none is named, the model does for the core, and
# the commands for all else.
_FOUND_BY = {
    "core": """
        chosen-holder-unchecked chosen-items-unchecked no-grace-period one-call-at-a-time
        looking-counts-as-use
        dry-run-releases lease-without-end delayed-out-of-order reason-is-lost result-without-end
        two-cleans-at-once duplicate-waits glob-in-the-name edit-overwrites wait-is-over-at-once
        password-in-an-error work-never-gives-up export-forgets-returns prune-of-live-entries
        last-lease-first below-or-equal older-is-younger leased-is-abandoned
        edit-shifts-lines
    """,
    "states": "low-priority-first earlier-lease-counts settling-lease-counts undo-twice",
    "server": """
        wait-turns-the-list endless-lookups old-connections-are-kept lost-writes-are-sent-again
        purge-of-nested-queues
    """,
    "cluster": "half-a-slot",
    "streams": "failure-after-work-is-no output-is-lost pause-is-the-end",
    "undo": "undo-at-the-end undo-without-a-question",
    "work": "work-counts-what-it-puts-back renewed-at-the-last-moment finishes-what-is-lost",
}
_FIRST = {name: part for part, names in _FOUND_BY.items() for name in names.split()}
REST = "rest"
# One cell that takes longer has failed; the slowest takes 30 s on a busy machine.
CELL_S = 60
# Far more than the whole suite takes.
_CLEAN_LIMIT_S = 1800.0
# A part takes no longer than so many times what it takes without a fault, and this.
_TIMES, _SPARE_S = 5, 60.0
# No name of a tree begins another's: processes are known by it.
_NAME = "{:04}"


class DoesNotEnd(Exception):
    """The suite hangs without a fault."""


@dataclass
class Found:
    """What one run of a part of the suite came to.

    Attributes:
        cells: The cells that failed.
        ran: How many ran.
        seconds: How long it took.
        hangs_in: The cell that it hung in, or what else it ended with; "" if it came to its end.
    """

    cells: list[str] = field(default_factory=list)
    ran: int = 0
    seconds: float = 0.0
    hangs_in: str = ""

    def by_file(self) -> Counter[str]:
        """How many cells failed, by file."""
        return Counter(cell.partition("::")[0] for cell in self.cells)


def parts_of(fault: Fault) -> tuple[str, ...]:
    """The parts of the suite that look for a fault, one after the other until it is found."""
    usual = "model" if fault.file.startswith("rwq_cli/core/") else "commands"
    first = _FIRST.get(fault.name, usual)
    return first, *(part for part in FAST if part != first), REST


def words_of(part: str) -> list[str]:
    """The words that run a part; the rest takes all of the machine."""
    if part != REST:
        return [*FAST[part], "-n", "0"]
    words = ["tests", "-n", "4"]
    for entry in chain.from_iterable(FAST.values()):
        words += ["--deselect" if "::" in entry else "--ignore", entry]
    return words


class Trees:
    """A copy of the working tree, from which one is made for each fault.

    Attributes:
        failing: Cells that fail without a fault; they find nothing.
    """

    def __init__(self) -> None:
        # Short: the names of sockets are below it.
        self.place = Path(tempfile.mkdtemp(prefix="rwq-m-"))
        self.failing: set[str] = set()
        self._clean = self.place / _NAME.format(0)
        self._usual_s: dict[str, float] = {}
        self._number = 0
        self._lock = Lock()
        self._is_closed = False
        tree.copy_sources(self._clean)
        tree.give_interpreter(self._clean)

    def close(self) -> None:
        """End everything that runs in a tree, and remove them all."""
        with self._lock:
            self._is_closed = True
        tree.end_processes_of(self.place)
        shutil.rmtree(self.place, ignore_errors=True)

    def run_clean(self, part: str) -> Iterator[str]:
        """Run a part without a fault, once: what fails then is no find, and how long it takes.

        Yields:
            What it came to, in words.

        Raises:
            DoesNotEnd: It hung, or ran nothing.
        """
        if part in self._usual_s:
            return
        found = self._pytest(self._clean, words_of(part), _CLEAN_LIMIT_S)
        if found.hangs_in or not found.ran:
            raise DoesNotEnd(f"without a fault, the {part} set does not end: {found.hangs_in}")
        self._usual_s[part] = found.seconds
        self.failing.update(found.cells)
        yield f"without a fault, the {part} set: {found.ran} cells, {found.seconds:.0f} s"
        for cell in found.cells:
            yield f"fails without a fault, and so finds none: {cell}"

    def run(self, fault: Fault, part: str) -> Found:
        """Run a part with a fault; it has been run without."""
        place = self._copy(fault)
        try:
            found = self._pytest(place, words_of(part), _TIMES * self._usual_s[part] + _SPARE_S)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        found.cells = [cell for cell in found.cells if cell not in self.failing]
        return found

    def _copy(self, fault: Fault) -> Path:
        with self._lock:
            self._number += 1
            place = self.place / _NAME.format(self._number)
        # With the bytecode; what is changed in a file is compiled again.
        left_out = shutil.ignore_patterns(".venv", "t", "b", ".hypothesis")
        shutil.copytree(self._clean, place, ignore=left_out)
        tree.give_interpreter(place)
        tree.apply(fault, place)
        return place

    def _pytest(self, place: Path, words: Sequence[str], limit_s: float) -> Found:
        temporary, log = place / "t", place / "cells"
        temporary.mkdir(exist_ok=True)
        log.write_text("")
        variables = {name: os.environ[name] for name in os.environ if not name.startswith("RWQ_")}
        variables |= {
            "TMPDIR": str(temporary),
            plugin.FILE: str(log),
            plugin.CELL_S: str(CELL_S),
        }
        command = [
            *(str(place / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "--no-header"),
            *("-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "--tb=no", "-rN"),
            *("--hypothesis-profile=mutants", "--hypothesis-seed=1"),
            *(f"--basetemp={place / 'b'}", *words),
        ]
        began_s = time.monotonic()
        with self._lock:
            if self._is_closed:
                return Found()
            process = subprocess.Popen(
                command,
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=(place / "out").open("wb"),
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches only the runner, which ends them all.
                start_new_session=True,
            )
        hangs = False
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            hangs = True
        tree.end_processes_of(place)
        process.wait()
        found = _read(log)
        found.seconds = time.monotonic() - began_s
        if hangs:
            found.hangs_in = found.hangs_in or "its end"
        elif process.returncode in (0, 1):
            found.hangs_in = ""
        else:
            said = (place / "out").read_text(errors="replace").strip().splitlines()
            found.hangs_in = f"pytest ended with {process.returncode}: {' '.join(said[-3:])}"
        return found


def _read(log: Path) -> Found:
    cells: dict[str, bool] = {}
    running: dict[str, None] = {}
    for line in log.read_text().splitlines():
        match json.loads(line):
            case {"started": cell}:
                running[cell] = None
            case {"finished": cell}:
                running.pop(cell, None)
            case {"cell": cell, "failed": failed}:
                cells[cell] = cells.get(cell, False) or failed
    failed = [cell for cell, has_failed in cells.items() if has_failed]
    return Found(failed, len(cells), hangs_in=", ".join(running))
