"""Running parts of the suite in copies of the tree, and what each fault made fail."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from itertools import chain, count
from pathlib import Path

from tests.mutants import tree
from tests.mutants.faults import Fault

# What finds most faults in little time: folders, files, or some cells of one. The model alone finds
# half of those in the core.
FAST: dict[str, tuple[str, ...]] = {
    "model": ("tests/model/test_model.py::test_our_scripts_do_what_the_model_says",),
    "core": (
        "tests/core/test_dry_runs.py::test_a_dry_run_on_each_kind_is_the_run",
        "tests/core/test_dry_runs.py::test_no_dry_run_counts_as_use",
        "tests/core/inspect/test_counting.py",
        "tests/core/inspect/test_listing.py",
        "tests/core/items/test_add.py",
        "tests/core/items/test_expected.py",
        "tests/core/items/test_results.py",
        "tests/core/items/test_lease.py",
        "tests/core/items/test_remove.py",
        "tests/core/items/test_restore.py",
        "tests/core/items/test_set_data.py",
        "tests/core/items/test_transfer.py",
        "tests/core/items/test_waiting.py",
        "tests/core/repair/test_lock.py",
        "tests/core/server/test_urls.py",
        "tests/core/server/test_window.py",
        "tests/core/test_keys.py",
        "tests/core/work/test_policy.py",
        "tests/commands/test_acting_verbs.py",
        "tests/commands/test_clean.py",
        "tests/commands/test_edit_run.py",
    ),
    "commands": (
        "tests/cli/test_confirm.py",
        "tests/cli/test_contract.py",
        "tests/cli/test_exit_codes.py",
        "tests/commands/test_check.py",
        "tests/output/test_fields.py",
        "tests/output/test_field.py",
        "tests/output/test_formats.py",
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
        "tests/core/server/test_patience.py::test_a_passing_refusal_is_awaited_on_a_new_link",
        "tests/core/server/test_patience.py::test_a_write_without_a_reply_is_not_sent_again",
        "tests/core/server/test_patience.py::test_a_read_whose_reply_is_lost_is_sent_again_once",
    ),
    "cluster": ("tests/cluster/test_cluster.py::test_nothing_runs_half_while_a_slot_moves",),
    "streams": (
        "tests/cli/test_every_stream.py::test_all_that_is_written_arrives_or_is_an_error[export]",
        "tests/cli/test_every_stream.py::test_all_is_read_of_a_pipe_that_pauses",
        "tests/cli/test_every_stream.py::test_a_full_undo_file_says_what_was_removed",
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
        edit-shifts-lines wait-turns-the-list move-over-another-item
    """,
    "states": "low-priority-first earlier-lease-counts settling-lease-counts undo-twice",
    "server": """
        endless-lookups old-connections-are-kept lost-writes-are-sent-again
        purge-of-nested-queues
    """,
    "cluster": "half-a-slot",
    "streams": "failure-after-work-is-no output-is-lost pause-is-the-end",
    "undo": "undo-at-the-end undo-without-a-question",
    "work": "work-counts-what-it-puts-back renewed-at-the-last-moment finishes-what-is-lost",
}
_FIRST = {name: part for part, names in _FOUND_BY.items() for name in names.split()}
REST = "rest"
# One cell that takes longer hangs; the slowest takes 30 s on a busy machine. A part takes no longer
# than so many times what it takes without a fault, and that.
_CELL_S, _TIMES = 60.0, 5
# Far more than the whole suite takes.
_CLEAN_LIMIT_S = 1800.0
_PASSED = "PASSED|SKIPPED.*|XFAIL.*|XPASS.*"
# A cell and what it came to, in one process or in several; and a file that cannot be imported.
_CELL = re.compile(rf"(?P<cell>tests/.+?) (?:(?P<bad>FAILED|ERROR)|{_PASSED})(?: +\[ *\d+%\])?")
_OF_MANY = re.compile(
    rf"\[gw\d+\] \[ *\d+%\] (?:(?P<bad>FAILED|ERROR)|{_PASSED}) (?P<cell>tests/.+)"
)
_FILE = re.compile(r"(?P<bad>ERROR) (?P<cell>tests/\S+)(?: - .*)?")


class DoesNotEnd(Exception):
    """The suite hangs without a fault."""


@dataclass
class Verdict:
    """What one or more parts of the suite came to.

    Attributes:
        found: How many cells failed, by file.
        parts: The parts that ran.
        seconds: How long they took.
        hangs_in: The cell that it hung in, or what else it ended with; "" if it came to its end.
    """

    found: Counter[str] = field(default_factory=Counter)
    parts: list[str] = field(default_factory=list)
    seconds: float = 0.0
    hangs_in: str = ""

    def add(self, other: "Verdict") -> None:
        self.found += other.found
        self.parts += other.parts
        self.seconds += other.seconds
        self.hangs_in = self.hangs_in or other.hangs_in


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
    """A copy of the working tree, from which one is made for each fault."""

    def __init__(self) -> None:
        # Short: the names of sockets are below it.
        self.place = Path(tempfile.mkdtemp(prefix="rwq-m-"))
        self._clean = self.place / "0"
        self._numbers = count(1)
        # By part, how long it takes without a fault; and what fails then, which finds nothing.
        self._usual_s: dict[str, float] = {}
        self._failing: set[str] = set()
        tree.copy_sources(self._clean)
        tree.give_interpreter(self._clean)

    def close(self) -> None:
        """End everything that runs in a tree, and remove them all."""
        tree.end_processes_of(self.place)
        shutil.rmtree(self.place, ignore_errors=True)

    def run_clean(self, part: str) -> str:
        """Run a part without a fault, once; what it came to, in words.

        Raises:
            DoesNotEnd: It hung, or ran nothing.
        """
        if part in self._usual_s:
            return ""
        words = words_of(part)
        ran, failed, seconds, hangs_in = self._pytest(self._clean, words, _CLEAN_LIMIT_S)
        if hangs_in or not ran:
            raise DoesNotEnd(f"without a fault, the {part} set does not end: {hangs_in}")
        self._usual_s[part] = seconds
        self._failing |= failed
        lines = [f"without a fault, the {part} set: {ran} cells, {seconds:.0f} s"]
        return "\n".join(lines + [f"fails then, and so finds nothing: {cell}" for cell in failed])

    def run(self, fault: Fault, part: str) -> Verdict:
        """Run a part with a fault; it has been run without."""
        with self._copy() as place:
            tree.apply(fault, place)
            limit_s = _TIMES * self._usual_s[part] + _CELL_S
            _, failed, seconds, hangs_in = self._pytest(place, words_of(part), limit_s)
        found = Counter(cell.partition("::")[0] for cell in failed - self._failing)
        return Verdict(found, [part], seconds, hangs_in)

    def run_words(
        self, file: str, text: str, words: Sequence[str], limit_s: float
    ) -> tuple[set[str], str]:
        """Run some tests with a file that has this text; which failed, and what they hung in."""
        with self._copy() as place:
            (place / file).write_text(text, "utf-8")
            Path(cache_from_source(str(place / file))).unlink(missing_ok=True)
            _, failed, _, hangs_in = self._pytest(place, words, limit_s)
        return failed, hangs_in

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        place = self.place / str(next(self._numbers))
        # With the bytecode; what is changed in a file is compiled again.
        left_out = shutil.ignore_patterns(".venv", "t", "b", ".hypothesis")
        shutil.copytree(self._clean, place, ignore=left_out)
        try:
            tree.give_interpreter(place)
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _pytest(
        self, place: Path, words: Sequence[str], limit_s: float
    ) -> tuple[int, set[str], float, str]:
        """How many cells ran, which failed, how long it took, and what it hung in."""
        temporary, log = place / "t", place / "out"
        temporary.mkdir(exist_ok=True)
        variables = {name: os.environ[name] for name in os.environ if not name.startswith("RWQ_")}
        command = [
            *(place / ".venv" / "bin" / "python", "-m", "pytest", "-vv", "--no-header", "--tb=no"),
            *("-rE", "-p", "no:cacheprovider", f"--basetemp={place / 'b'}"),
            *("--hypothesis-profile=mutants", "--hypothesis-seed=1"),
            *("-o", f"faulthandler_timeout={_CELL_S}", "-o", "faulthandler_exit_on_timeout=true"),
            *words,
        ]
        began_s = time.monotonic()
        with log.open("wb") as out, suppress(subprocess.TimeoutExpired):
            process = subprocess.Popen(
                command,
                cwd=place,
                env={**variables, "TMPDIR": str(temporary)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches only the runner, which ends them all.
                start_new_session=True,
            )
            process.wait(limit_s)
        is_over = process.poll() is not None
        tree.end_processes_of(place)
        process.wait()
        said = log.read_text(errors="replace").splitlines()
        ended = [match for match in map(_match, said) if match]
        failed = {match["cell"] for match in ended if match["bad"]}
        begun = [line for line in said if line.startswith("tests/") and not _match(line)]
        unfinished = "".join(begun[-1:]).partition(" Timeout (")[0].strip()
        if is_over and process.returncode == 1 and unfinished:
            # That took longer than a cell may.
            failed.add(unfinished)
        is_over = is_over and (process.returncode in (0, 1) or bool(failed))
        hangs_in = "" if is_over else unfinished or " ".join(said[-3:])
        return len(ended), failed, time.monotonic() - began_s, hangs_in


def _match(line: str) -> re.Match[str] | None:
    return _CELL.fullmatch(line) or _OF_MANY.fullmatch(line) or _FILE.fullmatch(line)
