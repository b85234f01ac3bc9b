"""The stage of the trials of the registry: fifty items, the command, and what becomes of each."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.keys import QueueKeys
from tests.conftest import Foreign
from tests.driver import Result, Rwq, undo_files
from tests.live.raw_keys import RawKeys, read_raw_keys
from tests.long import usual
from tests.verbs import STATES, TRIALS, Trial, is_gone

COUNT = 50
IDS = tuple(b"id-%02d" % number for number in range(COUNT))

# For what takes long.
SOME_TRIALS = TRIALS[:: usual(4, long=1)]
# Only on a cluster.
MOVE_TO_ANOTHER_SLOT = Trial(
    "mv - -o ids --to {far} --yes", "waiting", is_gone, names=True, takes="by a move elsewhere"
)
# Between two servers.
MOVE_TO_ANOTHER_SERVER = replace(
    MOVE_TO_ANOTHER_SLOT, words="mv - -o ids --to {far} --to-url {url} --yes"
)


def name_of(trial: Trial) -> str:
    """For a test's name."""
    return f"{' '.join((*trial.first, trial.words))} [{trial.before}]"


@dataclass(frozen=True, slots=True)
class FarQueue:
    """A queue in another slot of a cluster, or on another server: `raw` is its node's client."""

    raw: redis.Redis
    name: bytes
    queue: WorkQueue
    url: str = ""

    def look(self) -> RawKeys:
        """Its keys."""
        return read_raw_keys(self.raw, self.name)


def rwq_at(rwq: Rwq, url: str, queue: str = "jobs") -> Rwq:
    rwq.variables = {**rwq.variables, "RWQ_URL": url, "RWQ_QUEUE": queue}
    return rwq


class Stage:
    """A queue of fifty items, and rwq.

    One script can move items to the queue `other`, and none to `far`.
    """

    def __init__(
        self,
        rwq: Rwq,
        raw: redis.Redis,
        *,
        name: bytes = b"jobs",
        other: bytes = b"other",
        far: FarQueue | None = None,
    ) -> None:
        self.rwq = rwq
        self.raw = raw
        self.name = name
        self._other = QueueKeys(other)
        self._far = far
        self._queue = WorkQueue(Connection(raw), name)
        self._foreign = Foreign(raw, name)
        (self.home / "new").write_bytes(b"new data")
        raw.flushall()
        STATES["waiting"](self._foreign, *IDS)
        export = rwq("export")
        assert export.code == 0
        (self.home / "export").write_bytes(export.out)

    @property
    def home(self) -> Path:
        return self.rwq.home

    def arrange(self, trial: Trial) -> None:
        """Put the items there."""
        self.raw.flushall()
        if self._far is not None:
            self._far.raw.flushall()
        rmtree(self.home / ".local", ignore_errors=True)
        STATES[trial.before](self._foreign, *IDS)
        for line in trial.first:
            assert self.rwq(*self._filled_in(line)).code == 0
        self._before = self.look()

    def look(self) -> RawKeys:
        """The keys of the queue."""
        return read_raw_keys(self.raw, self.name)

    def words(self, trial: Trial) -> list[str]:
        return self._filled_in(trial.words)

    def _filled_in(self, line: str) -> list[str]:
        far = "" if self._far is None else self._far.name.decode()
        url = "" if self._far is None else self._far.url
        names = {"other": self._other.name.decode(), "far": far, "url": url}
        return line.format(home=self.home, **names).split()

    def stdin(self, trial: Trial) -> bytes:
        return b"".join(item_id + b"\n" for item_id in IDS) if trial.names else b""

    def run(self, trial: Trial, *more: str) -> Result:
        return self.rwq(*self.words(trial), *more, stdin=self.stdin(trial))

    def check(self, trial: Trial, result: Result) -> str:
        """Check that what was acknowledged is done, what is in doubt reported, and nothing lost.

        Returns `done`, `in part`, or `nothing` if it was refused or cut before it did anything.
        """
        assert b"Traceback" not in result.err, result
        done = self.done(trial)
        if result.code != 69:
            assert result.code == (1 if trial.words.startswith("doctor --grace") else 0), result
            named = len(re.findall(r"\bid-\d", trial.words))
            assert len(done) == (named or COUNT) or not trial.done
        else:
            self._check_error(trial, result, done)
        self.check_keys(trial, result.out)
        if result.code != 69:
            return "done"
        return "in part" if done else "nothing"

    def done(self, trial: Trial) -> set[bytes]:
        """The items on which it has done its work."""
        seen = self.look()
        return {item_id for item_id in IDS if trial.done and trial.done(seen, item_id)}

    def check_keys(self, trial: Trial, out: bytes) -> None:
        """What it printed is done, nothing is lost, and a clean leaves each item once."""
        seen, done = self.look(), self.done(trial)
        # Of a clean that was cut or killed: the next one would wait for it.
        keys = QueueKeys(self.name)
        self.raw.delete(keys.clean_lock, keys.move_lock)
        if trial.done and " -o ids" in trial.words:
            # The last line may be half of one.
            printed = {*out.split(b"\n")[:-1]} & {*IDS}
            assert printed <= done, printed - done
        self._check_data(trial, seen)
        if self._far is not None and trial.takes == "by a move elsewhere":
            self._check_far_move(trial, self._far)
        if trial.takes == "with an undo file" and done:
            # A file names the address by which the server was reached.
            assert self.rwq("undo", "--yes", "--anywhere").code in (0, 3)
        if seen != self._before:
            self._check_after_a_clean()

    def _check_error(self, trial: Trial, result: Result, done: set[bytes]) -> None:
        *notes, error = result.notes.splitlines()
        assert error.startswith(("rwq: error: ", '{"error": ')), result
        # The one note is where the undo file is.
        assert len(notes) <= ("undo file" in result.notes), result
        if not trial.done or " -o ids" not in trial.words:
            return
        acknowledged = {*result.out.split()}
        before = {*IDS} if trial.before == "leased" and trial.words.startswith("touch") else set()
        if done - acknowledged - before:
            reports = ("applied in full or not at all", "may now be leased", "may have been")
            assert any(text in result.notes for text in reports), (result, done - acknowledged)

    def _check_data(self, trial: Trial, seen: RawKeys) -> None:
        there = {item_id for item_id in IDS if item_id in seen.data}
        for item_id in there:
            assert seen.data[item_id] in (item_id, b"data of " + item_id, b"new data")
        if trial.before in ("nothing", "ghosts") or trial.takes in (
            *("for good", "by a move elsewhere"),
        ):
            return
        moved = {i for i in IDS if self.raw.exists(self._other.item(i))}
        assert not moved & there, "an item is in both queues"
        kept = set[bytes]()
        if trial.takes == "with an undo file" or trial.first:
            saved = b"".join(file.read_bytes() for file in undo_files(self.rwq))
            kept = {item_id for item_id in IDS if b'"' + item_id + b'"' in saved}
        assert there | moved | kept == {*IDS}

    def _check_far_move(self, trial: Trial, far: FarQueue) -> None:
        """Each item can be leased from one queue at most, and the same command moves all."""
        here, there = self.look(), far.look()
        assert here.data.keys() | there.data.keys() == {*IDS}
        leasable = [*here.main, *there.main]
        assert len(leasable) == len({*leasable})
        for queue in (self._queue, far.queue):
            list(queue.deep_clean(grace_s=0))
        assert (self.look().main, far.look().main) == (here.main, there.main)
        # What it finishes first, or had finished before, is missing afterwards.
        assert self.run(trial).code in (0, 1, 3)
        here, there = self.look(), far.look()
        assert (here.data, here.main, here.buried, here.leases) == ({}, (), {}, {})
        assert (sorted(there.main), there.data.keys(), there.buried) == ([*IDS], {*IDS}, {})

    def _check_after_a_clean(self) -> None:
        list(self._queue.deep_clean(grace_s=0))
        seen = self.look()
        listed = [*seen.main, *seen.processing, *seen.delayed, *seen.buried]
        assert sorted(listed) == sorted(seen.data)
