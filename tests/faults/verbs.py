"""Every verb on fifty items: how they are beforehand, the command, and what it does to each.

`Stage` puts the items there, and checks them afterwards.
"""

from collections.abc import Callable
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

COUNT = 50
IDS = tuple(b"id-%02d" % number for number in range(COUNT))

Fill = Callable[[Foreign], object]
# Whether a verb has done its work on an item, by the raw keys.
Done = Callable[[RawKeys, bytes], bool]


FILLS: dict[str, Fill] = {
    "nothing": lambda _foreign: None,
    "waiting": lambda foreign: foreign.waiting(*IDS),
    "leased": lambda foreign: foreign.leased(*IDS, holder=b"rwq:tester@host:s1"),
    "abandoned": lambda foreign: foreign.abandoned(*IDS),
    "returned once": lambda foreign: (
        foreign.abandoned(*IDS),
        foreign.raw.hset(foreign.keys.returns, mapping=dict.fromkeys(IDS, 1)),
    ),
    "orphaned": lambda foreign: foreign.data(*IDS),
    "ghosts": lambda foreign: foreign.raw.lpush(foreign.keys.main, *IDS),
    "buried": lambda foreign: [foreign.buried(item_id, b"why") for item_id in IDS],
    "due": lambda foreign: [foreign.delayed(item_id, at) for at, item_id in enumerate(IDS, 1)],
}


@dataclass(frozen=True, slots=True)
class Verb:
    """A command line for fifty items.

    Attributes:
        words: Its words; `{home}`, `{other}`, `{far}` and `{url}` stand for a directory, two
            queues, and the server of the second.
        before: How the items are before it: one of `FILLS`.
        done: Whether an item is as the command leaves it; None for a command that only reads.
        names: Whether the IDs are given on stdin.
        takes: Whether it takes data away: "for good", "with an undo file", "by a move", "by a move
            elsewhere" or "".
        first: Command lines that are run before it.
    """

    words: str
    before: str
    done: Done | None = None
    names: bool = False
    takes: str = ""
    first: tuple[str, ...] = ()


def _waits(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.main and item_id in seen.data


def _leased(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.processing and bool(seen.workers(item_id))


def _gone(seen: RawKeys, item_id: bytes) -> bool:
    return item_id not in seen.data


def _delayed(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.delayed and bool(seen.guard(item_id))


def _put_away(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.buried and bool(seen.guard(item_id))


VERBS = (
    Verb("add --id-from line -o ids", "nothing", _waits, names=True),
    Verb("add --id-from line --unique -o ids", "nothing", _waits, names=True),
    Verb("add --id-from line --delay 1h -o ids", "nothing", _delayed, names=True),
    Verb("lease -n 50 -o ids", "waiting", _leased),
    Verb("lease -n 50 -o ids", "due", _leased),
    Verb("lease -o ids --id id-07 --id id-30 --id id-11", "waiting", _leased),
    Verb("complete - -o ids", "leased", _gone, names=True, takes="for good"),
    Verb("complete - -o ids --rejected", "leased", _gone, names=True, takes="for good"),
    Verb(
        "complete - -o ids --result {home}/new",
        "leased",
        lambda seen, item_id: item_id not in seen.data and item_id in seen.results,
        names=True,
        takes="for good",
    ),
    Verb("touch - -o ids", "leased", _leased, names=True),
    Verb("release - -o ids --force --yes", "leased", _waits, names=True),
    Verb("release - -o ids --force --yes --front", "leased", _waits, names=True),
    Verb("release - -o ids --delay 1h", "waiting", _delayed, names=True),
    Verb("bury - -o ids", "waiting", _put_away, names=True),
    Verb("kick --all -o ids", "buried", _waits),
    Verb("clean light --grace 0 -o ids", "abandoned", _waits),
    Verb("clean light --grace 0 --bury-after 1 -o ids", "returned once", _put_away),
    Verb("clean light --grace 0 -o ids", "due", _waits),
    Verb("clean deep --grace 0 -o ids", "orphaned", _waits),
    Verb(
        "clean deep --grace 0 -o ids",
        "ghosts",
        lambda seen, item_id: item_id not in seen.main,
        takes="for good",
    ),
    Verb("doctor --fix --grace 0 --only abandoned -o ids", "abandoned"),
    Verb("rm - -o ids --yes", "waiting", _gone, names=True, takes="with an undo file"),
    Verb("mv - -o ids --to {other} --yes", "waiting", _gone, names=True, takes="by a move"),
    Verb("purge -o ids --yes", "waiting", _gone, takes="with an undo file"),
    Verb("undo --anywhere --yes -o ids", "waiting", _waits, first=("rm --all --yes -Q",)),
    Verb(
        "undo --anywhere --yes -o ids", "waiting", _waits, first=("mv --all --to {other} --yes -Q",)
    ),
    Verb("import {home}/export -o ids", "nothing", _waits),
    Verb("edit id-07 --yes -f {home}/new -o ids", "waiting"),
    Verb("ls -o ids -n 0", "waiting"),
    Verb("ls all -o jsonl --data", "leased"),
    Verb("leases -o jsonl", "leased"),
    Verb("show - -o json", "buried", names=True),
    Verb("stats --deep -o json", "waiting"),
    Verb("queues -o json", "waiting"),
    Verb("export", "waiting"),
    Verb("doctor --grace 0 -o json", "abandoned"),
)
# For what takes long.
SOME_VERBS = VERBS[:: usual(4, long=1)]
# Only on a cluster.
MOVE_TO_ANOTHER_SLOT = Verb(
    "mv - -o ids --to {far} --yes", "waiting", _gone, names=True, takes="by a move elsewhere"
)
# Between two servers.
MOVE_TO_ANOTHER_SERVER = replace(
    MOVE_TO_ANOTHER_SLOT, words="mv - -o ids --to {far} --to-url {url} --yes"
)


def name_of(verb: Verb) -> str:
    """For a test's name."""
    return f"{' '.join((*verb.first, verb.words))} [{verb.before}]"


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
    """rwq on this server and queue."""
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
        FILLS["waiting"](self._foreign)
        export = rwq("export")
        assert export.code == 0
        (self.home / "export").write_bytes(export.out)

    @property
    def home(self) -> Path:
        return self.rwq.home

    def arrange(self, verb: Verb) -> None:
        """Put the items there."""
        self.raw.flushall()
        if self._far is not None:
            self._far.raw.flushall()
        rmtree(self.home / ".local", ignore_errors=True)
        FILLS[verb.before](self._foreign)
        for line in verb.first:
            assert self.rwq(*self._filled_in(line)).code == 0
        self._before = self.look()

    def look(self) -> RawKeys:
        """The keys of the queue."""
        return read_raw_keys(self.raw, self.name)

    def words(self, verb: Verb) -> list[str]:
        return self._filled_in(verb.words)

    def _filled_in(self, line: str) -> list[str]:
        far = "" if self._far is None else self._far.name.decode()
        url = "" if self._far is None else self._far.url
        names = {"other": self._other.name.decode(), "far": far, "url": url}
        return line.format(home=self.home, **names).split()

    def stdin(self, verb: Verb) -> bytes:
        return b"".join(item_id + b"\n" for item_id in IDS) if verb.names else b""

    def run(self, verb: Verb, *more: str) -> Result:
        return self.rwq(*self.words(verb), *more, stdin=self.stdin(verb))

    def check(self, verb: Verb, result: Result) -> str:
        """Check that what was acknowledged is done, what is in doubt reported, and nothing lost.

        Returns `done`, `in part`, or `nothing` if it was refused or cut before it did anything.
        """
        assert b"Traceback" not in result.err, result
        done = self.done(verb)
        if result.code != 69:
            assert result.code == (1 if verb.words.startswith("doctor --grace") else 0), result
            assert len(done) in ((1, 3) if "id-07" in verb.words else (COUNT,)) or not verb.done
        else:
            self._check_error(verb, result, done)
        self.check_keys(verb, result.out)
        if result.code != 69:
            return "done"
        return "in part" if done else "nothing"

    def done(self, verb: Verb) -> set[bytes]:
        """The items on which it has done its work."""
        seen = self.look()
        return {item_id for item_id in IDS if verb.done and verb.done(seen, item_id)}

    def check_keys(self, verb: Verb, out: bytes) -> None:
        """What it printed is done, nothing is lost, and a clean leaves each item once."""
        seen, done = self.look(), self.done(verb)
        # Of a clean that was cut or killed: the next one would wait for it.
        self.raw.delete(QueueKeys(self.name).clean_lock)
        if verb.done and " -o ids" in verb.words:
            # The last line may be half of one.
            printed = {*out.split(b"\n")[:-1]} & {*IDS}
            assert printed <= done, printed - done
        self._check_data(verb, seen)
        if self._far is not None and verb.takes == "by a move elsewhere":
            self._check_far_move(verb, self._far)
        if verb.takes == "with an undo file" and done:
            # A file names the address by which the server was reached.
            assert self.rwq("undo", "--yes", "--anywhere").code in (0, 3)
        if seen != self._before:
            self._check_after_a_clean(verb)

    def _check_error(self, verb: Verb, result: Result, done: set[bytes]) -> None:
        *notes, error = result.notes.splitlines()
        assert error.startswith(("rwq: error: ", '{"error": ')), result
        # The one note is where the undo file is.
        assert len(notes) <= ("undo file" in result.notes), result
        if not verb.done or " -o ids" not in verb.words:
            return
        acknowledged = {*result.out.split()}
        before = {*IDS} if verb.before == "leased" and verb.words.startswith("touch") else set()
        if done - acknowledged - before:
            reports = ("applied in full or not at all", "may now be leased", "may have been")
            assert any(text in result.notes for text in reports), (result, done - acknowledged)

    def _check_data(self, verb: Verb, seen: RawKeys) -> None:
        there = {item_id for item_id in IDS if item_id in seen.data}
        for item_id in there:
            assert seen.data[item_id] in (item_id, b"data of " + item_id, b"new data")
        if verb.before in ("nothing", "ghosts") or verb.takes in (
            *("for good", "by a move elsewhere"),
        ):
            return
        moved = {i for i in IDS if self.raw.exists(self._other.item(i))}
        assert not moved & there, "an item is in both queues"
        kept = set[bytes]()
        if verb.takes == "with an undo file" or verb.first:
            saved = b"".join(file.read_bytes() for file in undo_files(self.rwq))
            kept = {item_id for item_id in IDS if b'"' + item_id + b'"' in saved}
        assert there | moved | kept == {*IDS}

    def _check_far_move(self, verb: Verb, far: FarQueue) -> None:
        """Each item can be leased from one queue at most, and the same command moves all."""
        here, there = self.look(), far.look()
        assert here.data.keys() | there.data.keys() == {*IDS}
        leasable = [*here.main, *there.main]
        assert len(leasable) == len({*leasable})
        for queue in (self._queue, far.queue):
            list(queue.deep_clean(grace_s=0))
        assert (self.look().main, far.look().main) == (here.main, there.main)
        # What it finishes first, or had finished before, is missing afterwards.
        assert self.run(verb).code in (0, 1, 3)
        here, there = self.look(), far.look()
        assert (here.data, here.main, here.buried, here.leases) == ({}, (), {}, {})
        assert (sorted(there.main), there.data.keys(), there.buried) == ([*IDS], {*IDS}, {})

    def _check_after_a_clean(self, verb: Verb) -> None:
        list(self._queue.deep_clean(grace_s=0))
        seen = self.look()
        listed = [*seen.main, *seen.processing, *seen.delayed, *seen.buried]
        assert sorted(listed) == sorted(seen.data), verb
