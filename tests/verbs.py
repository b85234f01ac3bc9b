"""The registry of verbs for tests: a row for each command, and the one queue on which all run.

The product's half is `SECTIONS` in `rwq_cli/cli/app.py` and the `Manual` of each command. What
holds for all verbs is tested by these rows alone; `test_verbs.py` says what a new verb lacks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rwq_cli.core.items.add import Due
from rwq_cli.core.items.complete import ResultOptions, complete, remove
from rwq_cli.core.items.move import move
from rwq_cli.core.items.restore import OnConflict
from rwq_cli.core.items.schedule import bury, kick, release, touch
from rwq_cli.core.model import State
from rwq_cli.core.repair.findings import Code
from rwq_cli.core.state.expected import Expected
from rwq_cli.exit_codes import ExitStatus
from tests.all_commands import CommandInfo, all_commands
from tests.conftest import Foreign
from tests.core import operations as core
from tests.core.operations import Operation, outcomes
from tests.live.raw_keys import RawKeys

FAR_MS = 9_999_999_999_999
# How items come to be in a state, by raw keys.
STATES: dict[str, Callable[..., object]] = {
    "nothing": lambda *_: None,
    "waiting": Foreign.waiting,
    "leased": lambda foreign, *ids: foreign.leased(*ids, holder=b"rwq:tester@host:s1"),
    "leased by another": lambda foreign, *ids: foreign.leased(*ids, holder=b"worker-7"),
    "held": lambda foreign, *ids: foreign.leased(*ids, ttl_ms=None),
    "abandoned": Foreign.abandoned,
    "returned once": lambda foreign, *ids: (
        foreign.abandoned(*ids),
        foreign.raw.hset(foreign.keys.returns, mapping=dict.fromkeys(ids, 1)),
    ),
    "orphaned": Foreign.data,
    "ghosts": lambda foreign, *ids: foreign.raw.lpush(foreign.keys.main, *ids),
    "ghosts in processing": lambda foreign, *ids: foreign.raw.lpush(foreign.keys.processing, *ids),
    "buried": lambda foreign, *ids: [foreign.buried(item_id) for item_id in ids],
    "delayed": lambda foreign, *ids: [foreign.delayed(item_id, FAR_MS) for item_id in ids],
    "due": lambda foreign, *ids: [
        foreign.delayed(item_id, at) for at, item_id in enumerate(ids, 1)
    ],
}
# The queue `jobs` on which the lines of the rows run.
IDS_BY_STATE: dict[str, tuple[bytes, ...]] = {
    "waiting": (b"w1", b"w2", b"w3"),
    "abandoned": (b"a1", b"a2"),
    "leased by another": (b"l1",),
    "held": (b"h1",),
    "buried": (b"b1",),
    "delayed": (b"d1",),
    "orphaned": (b"o1",),
    "ghosts in processing": (b"g1",),
}


def fill(foreign: Foreign) -> None:
    """Empty the server, and make the queue: some items of each state, a result `done`, and a queue
    `copy` that has `w1` of it."""
    # The doctor tells how often a server was flushed.
    if keys := foreign.raw.keys():
        foreign.raw.delete(*keys)
    for state, ids in IDS_BY_STATE.items():
        STATES[state](foreign, *ids)
    Foreign(foreign.raw, b"copy").waiting(b"w1")
    fields = {"status": "completed", "completed_ms": 1_700_000_000_000}
    foreign.raw.hset("jobs:result:done", mapping=fields)  # type: ignore[arg-type]


# Whether a verb has done its work on an item, by the raw keys.
Done = Callable[[RawKeys, bytes], bool]


@dataclass(frozen=True, slots=True)
class Trial:
    """A command line for fifty items, whose connection is cut, and whose process is killed.

    Attributes:
        words: Its words; `{home}`, `{other}`, `{far}` and `{url}` stand for a directory, two
            queues, and the server of the second. The items are `id-00` to `id-49`: it acts on those
            that it names, else on all.
        before: How the items are before it: one of `STATES`.
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


def waits(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.main and item_id in seen.data


def is_leased(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.processing and bool(seen.workers(item_id))


def is_gone(seen: RawKeys, item_id: bytes) -> bool:
    return item_id not in seen.data


def is_delayed(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.delayed and bool(seen.guard(item_id))


def is_buried(seen: RawKeys, item_id: bytes) -> bool:
    return item_id in seen.buried and bool(seen.guard(item_id))


@dataclass(frozen=True, slots=True)
class Row:
    """What tests know of a verb.

    Lines run on the queue of `fill`. What stands before a `;` runs first, what stands after a `<`
    is stdin, where `{export}` and `{header}` stand for an export of the queue and its first line.

    Attributes:
        line: Does or shows something, and asks no question. Ends with 0 unless it stands below.
        stdin: What that reads.
        ok, no, partial: Lines that end with 0, with 1 and change nothing, and with 3.
        usage: Lines that end with 2, with how the error begins.
        unproved: Exit codes that its help promises, and the reason why no line here shows it.
        counts: The names in the summary in JSON, besides `queue` and `dry_run`.
        listings: Lines that list records, with the columns of CSV.
        objects: Lines that show one record.
        trials: What is cut and killed.
        untried: Where it meets faults, or why there is none to meet, if it has no trials.
        operations: What it runs of the core, by names of our own.
        heaviest: Those that are also run on many items: of one script, what writes most. All if
            none is named.
        frees: The operations need no memory.
        is_local: It needs no server, or has its own.
        elsewhere: Where its exit codes are tested.
    """

    line: str
    stdin: bytes = b""
    ok: Sequence[str] = ()
    no: Sequence[str] = ()
    partial: Sequence[str] = ()
    usage: Mapping[str, str] | None = None
    unproved: Mapping[int, str] | None = None
    counts: str = ""
    listings: Mapping[str, str] | None = None
    objects: Sequence[str] = ()
    trials: Sequence[Trial] = ()
    untried: str = ""
    operations: Mapping[str, Operation] | None = None
    heaviest: Sequence[str] = ()
    frees: bool = False
    is_local: bool = False
    elsewhere: str = ""

    def lines(self) -> dict[ExitStatus, Sequence[str]]:
        """Every line by the code with which it ends."""
        others = {
            ExitStatus.NO: self.no,
            ExitStatus.USAGE: tuple(self.usage or ()),
            ExitStatus.PARTIAL: self.partial,
        }
        is_other = any(self.line in lines for lines in others.values())
        return {ExitStatus.OK: (*self.ok, *([] if is_other else [self.line])), **others}


def _no_field(*lines: str) -> dict[str, str]:
    return dict.fromkeys(lines, "no field 'colour'; ")


def _not_listed(line: str) -> dict[str, str]:
    return {line: "--sort, --reverse and --by work only for listings; "}


def _both(**options: str) -> dict[str, str]:
    """Lines that name items and choose them, too."""
    error = "IDs and {} cannot be used together; give IDs, or choose items by options\n"
    return {line: error.format(option) for option, line in options.items()}


def _refused(*lines: str) -> dict[str, str]:
    """Lines whose error is said elsewhere."""
    return dict.fromkeys(lines, "")


_IN_ALL = "id state lease_holder lease_ttl_ms returns idle_seconds bytes preview"
_OF_AN_ITEM = "id lease_ttl_ms returns bytes data"
_OF_A_FINDING = "code severity count fixed left examples command"
_OF_A_CLEAN = "returned dropped promoted pruned buried"
_FILES = "no server: a file"
_TO_OTHER = {"to": b"other", "journal": None}
VERBS: dict[str, Row] = {
    "add": Row(
        "add x y",
        no=("add --format jsonl < x",),
        partial=('add --format jsonl < {"data": 1}\nx\n',),
        usage=_refused(
            *("add x --nothing", "add x --format what", "add -f / x", "add x x --id a"),
            *("add -f /etc/passwd -f nowhere", "add x --at 8:00", "add x --delay -5m"),
            "add x --reconnect 1m",
        ),
        counts="added duplicates rejected empty",
        trials=(
            Trial("add --id-from line -o ids", "nothing", waits, names=True),
            Trial("add --id-from line --unchecked -o ids", "nothing", waits, names=True),
            Trial("add --id-from line --delay 1h -o ids", "nothing", is_delayed, names=True),
        ),
        operations={
            "add": core.adding(),
            "add unique": core.adding(unique=True),
            "add later": core.adding(Due(60_000, from_now=True)),
        },
        heaviest=("add",),
    ),
    "work": Row(
        "work --drain -- true",
        partial=("work --drain --retries 0 -- false",),
        usage=_refused("work") | _no_field("work --dry-run --sort colour -- true"),
        untried="tests/live/test_chaos.py, tests/cli/work",
    ),
    "lease": Row(
        "lease -n 2",
        no=("lease -q none", "lease --id l1"),
        partial=("lease --id w1 --id gone",),
        usage=_refused(
            *("lease --for x", "lease --for 99999999999999999999", "lease -n 0"),
            *("lease --id w1 -n 1", "lease --id w1 --wait"),
        ),
        listings=dict.fromkeys(("lease -n 5", "lease -n 5 --dry-run"), _OF_AN_ITEM),
        trials=(
            Trial("lease -n 50 -o ids", "waiting", is_leased),
            Trial("lease -n 50 -o ids", "due", is_leased),
            Trial("lease -o ids --id id-07 --id id-30 --id id-11", "waiting", is_leased),
        ),
        operations={
            "lease": core.LEASE,
            "lease by ID": core.LEASE_BY_ID,
            "promotion": core.PROMOTION,
        },
    ),
    "complete": Row(
        "complete w1 gone",
        ok=("complete w1", "complete --match nothing"),
        no=("complete gone",),
        partial=("complete w1 gone",),
        usage=_not_listed("complete a --by id")
        | _both(**{"--match": "complete w1 w2 --match=x --id-glob *"})
        | _both(**{"--older-than": "complete w1 --older-than 1h"}),
        counts="undo_file completed missing not_owner failures",
        trials=(
            Trial(
                "complete - -o ids --rejected",
                "waiting",
                is_gone,
                names=True,
                takes="with an undo file",
            ),
            Trial(
                "complete - -o ids --owner rwq:tester@host:s1 --result {home}/new",
                "leased",
                lambda seen, item_id: item_id not in seen.data and item_id in seen.results,
                names=True,
                takes="for good",
            ),
        ),
        operations={
            "complete": outcomes(complete, ordered=True),
            "complete by owner": outcomes(complete, ordered=True, owner=b"them"),
            "complete with a result": outcomes(
                complete,
                ordered=True,
                option="--result",
                result_options=ResultOptions(b"result"),
            ),
            "complete what waits": outcomes(
                lambda *args, **options: complete(
                    *args, expected=Expected(states=frozenset({State.WAITING})), **options
                ),
                ordered=True,
            ),
        },
        heaviest=("complete with a result",),
        frees=True,
    ),
    "result": Row(
        "result done",
        no=("result gone",),
        usage=_refused("result"),
        objects=("result done", "result gone --wait"),
        untried="they promote what is due, as a clean does",
    ),
    "touch": Row(
        "touch h1 w1",
        ok=("touch l1",),
        no=("touch w1",),
        partial=("touch h1 w1",),
        usage={
            "touch --state waiting": "this command does not apply to waiting items; --state is one "
            "of leased, held, unlisted\n",
            **_both(**{"--state": "touch w1 --state leased"}),
            **_both(**{"--all": "touch - --all < w1"}),
        },
        counts="touched not_leased missing failures",
        trials=(Trial("touch - -o ids", "leased", is_leased, names=True),),
        operations={"touch": outcomes(touch, ordered=True)},
    ),
    "release": Row(
        "release l1 --force --yes",
        no=("release gone", "release l1"),
        partial=("release a1 gone",),
        usage=_refused("release a1 --front --delay 1h", "release a1 --delay 0.0001")
        | _both(**{"--match": "release - --match x < w1"})
        | _both(**{"-n": "release w1 -n 0"}),
        counts="released already_waiting moving not_owner missing failures",
        trials=(
            Trial("release - -o ids --force --yes", "leased", waits, names=True),
            Trial("release - -o ids --force --yes --front", "leased", waits, names=True),
            Trial("release - -o ids --delay 1h", "waiting", is_delayed, names=True),
        ),
        operations={
            "release": outcomes(release),
            "release by force": outcomes(release, force=True),
            "release one's own": outcomes(release, own_only=True),
            "release to the front": outcomes(release, front=True),
            "release later": outcomes(release, delay_s=1000, option="--delay"),
        },
        heaviest=("release to the front", "release later"),
    ),
    "bury": Row(
        "bury w1 gone",
        ok=("bury w1",),
        no=("bury gone", "bury l1"),
        partial=("bury w1 gone", "bury a1 l1"),
        usage=_refused("bury l1 --force") | _both(**{"--where": "bury - --where a=1 < w1"}),
        counts="buried already_buried reason_replaced moving not_owner missing failures",
        trials=(Trial("bury - -o ids", "waiting", is_buried, names=True),),
        operations={
            "bury": outcomes(bury),
            "bury by force": outcomes(bury, force=True),
            "bury with a reason": outcomes(bury, reason=b"because"),
        },
        heaviest=("bury with a reason",),
    ),
    "kick": Row(
        "kick b1 gone",
        ok=("kick b1", "kick --match nothing"),
        no=("kick w1",),
        partial=("kick b1 gone",),
        usage=_both(**{"--id-glob": "kick w1 w2 --id-glob *"}),
        counts="kicked not_buried moving not_owner missing failures",
        trials=(Trial("kick --all -o ids", "buried", waits),),
        operations={"kick": outcomes(kick)},
    ),
    "edit": Row(
        "edit w1 --yes -f /dev/null",
        ok=("edit w1 -f - < x",),
        no=("edit gone -f - < x",),
        usage=_refused(
            *("edit w1 -f /nowhere/file", "edit w1 w2", "edit w1 --lines", "edit -"),
            *("edit w1 --run cat -f -", "edit --run cat", "edit --where n=1"),
        ),
        counts="undo_file set missing failures",
        trials=(
            Trial(
                "edit id-07 --yes -f {home}/new -o ids",
                "waiting",
                lambda seen, item_id: seen.data.get(item_id) == b"new data",
            ),
        ),
        operations={"set data": core.SET_DATA},
    ),
    "rm": Row(
        "rm w1 gone --yes",
        ok=("rm w1 --yes",),
        no=("rm --yes gone",),
        partial=("rm w1 gone --yes",),
        usage=_refused("rm", "rm --all w1", "rm --where a=>3 --yes"),
        counts="undo_file removed missing failures",
        trials=(
            Trial("rm - -o ids --yes", "waiting", is_gone, names=True, takes="with an undo file"),
        ),
        operations={"remove": outcomes(remove, ordered=True, journal=None)},
        frees=True,
    ),
    "mv": Row(
        "mv --to other w1 --yes",
        no=("mv --to other --yes gone",),
        partial=("mv --to other --yes w1 gone",),
        usage=_refused("mv --yes w1"),
        counts="to to_b64 undo_file moved not_owner conflict missing failures",
        trials=(
            Trial(
                "mv - -o ids --to {other} --yes", "waiting", is_gone, names=True, takes="by a move"
            ),
        ),
        operations={
            "move": outcomes(move, ordered=True, **_TO_OTHER),
            "move by force": outcomes(move, ordered=True, force=True, **_TO_OTHER),
        },
        heaviest=("move by force",),
    ),
    "purge": Row(
        "purge --yes",
        ok=("purge -q none",),
        usage=_refused("purge w1"),
        unproved=dict.fromkeys((1, 3), "only if others write meanwhile"),
        counts="undo_file removed results failures",
        trials=(Trial("purge -o ids --yes", "waiting", is_gone, takes="with an undo file"),),
        operations={"purge": core.PURGE},
        frees=True,
    ),
    "undo": Row(
        "undo --list",
        ok=("rm --yes w1; undo --yes",),
        no=("rm --yes w1; add x --id w1; undo --yes",),
        partial=("rm --yes w1 a1; add x --id w1; undo --yes",),
        usage=_refused("undo /nowhere/file")
        | _no_field(
            *("undo --list --sort colour", "undo --prune --older-than 1d --fields state,colour")
        )
        | _not_listed("undo --prune --older-than 1d --sort state"),
        trials=(
            Trial("undo --anywhere --yes -o ids", "waiting", waits, first=("rm --all --yes -Q",)),
            Trial(
                *("undo --anywhere --yes -o ids", "waiting", waits),
                first=("mv --all --to {other} --yes -Q",),
            ),
        ),
        operations={
            "undo of an import": core.UNDO_OF_AN_IMPORT,
            "undo of a set": core.UNDO_OF_A_SET,
            "undo of a move": core.UNDO_OF_A_MOVE,
        },
        heaviest=("undo of an import",),
        is_local=True,
    ),
    "ls": Row(
        "ls",
        ok=("ls --match nothing",),
        usage={
            **_refused(
                *("ls a b", "ls buried --deep", "ls -n -1", "ls --match [", "ls --tls-insecure"),
                *("ls --older-than soon", "ls --password-file nowhere", "ls -u http://host"),
                *("ls -u redis+sentinel://127.0.0.1:1", "ls --fields .a..b"),
            ),
            **{
                f"ls {word}": f"WHICH cannot be '{word}'; did you mean: rwq ls {meant}\n"
                for word, meant in (("wating", "waiting"), ("jobs", "-q jobs"))
            },
            **{
                f"ls {words}": f"{finder} finds no {states} items; leave one of the two out\n"
                for words, finder, states in (
                    ("leased --state abandoned", "ls leased", "abandoned"),
                    ("waiting --state buried", "ls waiting", "buried"),
                    ("due --state delayed", "ls due", "delayed"),
                    ("--state orphaned --holder x", "--holder", "orphaned"),
                    ("all --state abandoned --ttl 1h", "--ttl", "abandoned"),
                )
            },
            **_no_field("ls --by colour"),
            "ls --fields ,": "--fields names no field; ",
        },
        listings={
            "ls": "position id returns idle_seconds bytes preview",
            "ls --data": "position id returns idle_seconds bytes data",
            "ls all": _IN_ALL,
            "ls processing": _IN_ALL,
        },
        trials=(
            Trial("ls -o ids -n 0", "waiting"),
            Trial("ls all -o jsonl --data", "leased"),
        ),
    ),
    "leases": Row(
        "leases",
        usage=_refused("leases -n x", "leases --state waiting", "leases --mine --holder *")
        | {"leases --by lease": "lease has several fields; use lease_holder or lease_ttl_ms\n"},
        listings={"leases": _IN_ALL},
        trials=(Trial("leases -o jsonl", "leased"),),
    ),
    "show": Row(
        "show w1",
        no=("show gone",),
        partial=("show w1 gone",),
        usage=_refused("show")
        | {
            f"show {word}": f"no such option: {option}; for an ID that begins with -: "
            f"rwq show -- {word}\n"
            for word, option in (("-dash", "-d"), ("--an-id", "--an-id"))
        },
        objects=("show w1", "show gone"),
        trials=(Trial("show - -o json", "buried", names=True),),
    ),
    "tail": Row(
        "tail --timeout 1ms",
        no=("tail -n 1 --timeout 1ms",),
        usage=_refused("tail --state gone", "tail -n 0 --timeout 1ms"),
        untried="tests/commands/test_tail.py",
    ),
    "history": Row(
        "history",
        usage=_refused("history --since 0", "history --step x"),
        untried="tests/commands/test_history.py",
    ),
    "stats": Row(
        "stats",
        ok=("stats -q none",),
        usage=_refused("stats --fast --deep", "stats --fields .a")
        | {"stats -dash": "no such option: -d; see rwq stats --help\n"},
        listings={
            "stats -q jobs -q other": "queue waiting leased abandoned held delayed buried",
        },
        objects=("stats", "stats --fast", "stats --deep"),
        trials=(Trial("stats --deep -o json", "waiting"),),
    ),
    "queues": Row(
        "queues",
        ok=("queues none",),
        usage=_refused("queues a b"),
        listings={"queues": "queue waiting processing abandoned delayed buried"},
        trials=(Trial("queues -o json", "waiting"),),
    ),
    "diff": Row(
        "diff jobs copy",
        ok=("diff jobs --file - < {export}",),
        no=("diff jobs none", "diff jobs copy", "diff none nothing"),
        usage=_refused("diff jobs"),
    ),
    "top": Row(
        "",
        usage={
            "top": "top needs a terminal for stdin, stdout and stderr; use rwq queues --watch 2s\n"
        },
        untried="tests/top",
        elsewhere="tests/top",
    ),
    "wait": Row(
        "wait --below 99",
        no=("wait --timeout 10ms",),
        usage=_refused("wait --below 1 --id a"),
        objects=("wait --below 99", "wait --timeout 0"),
        untried="they promote what is due, as a clean does",
    ),
    **{
        f"clean {how}": Row(
            f"clean {how} --grace 0",
            ok=(f"clean {how} -q none",),
            usage=usage,
            counts=_OF_A_CLEAN,
            trials=trials,
            operations={
                f"{how} clean": core.cleaning(f"{how}_clean"),
                f"{how} clean that buries": core.cleaning(f"{how}_clean", bury_after=2),
            },
            heaviest=(f"{how} clean that buries",),
        )
        for how, usage, trials in (
            (
                "light",
                _refused(
                    *("clean light --grace x", "clean light --deep-every 6h"),
                    *("clean light --notify", "clean light --every 0"),
                    "clean light --every 1s --listen ::1:9113",
                    "clean light --every 1s --listen 192.0.2.1:1",
                )
                | _not_listed("clean light --every 1s --reverse"),
                (
                    Trial("clean light --grace 0 -o ids", "abandoned", waits),
                    Trial(
                        "clean light --grace 0 --bury-after 1 -o ids", "returned once", is_buried
                    ),
                    Trial("clean light --grace 0 -o ids", "due", waits),
                ),
            ),
            (
                "deep",
                _refused("clean deep extra"),
                (
                    Trial("clean deep --grace 0 -o ids", "orphaned", waits),
                    Trial(
                        "clean deep --grace 0 -o ids",
                        "ghosts",
                        lambda seen, item_id: item_id not in seen.main,
                        takes="for good",
                    ),
                ),
            ),
        )
    },
    "doctor": Row(
        "doctor --grace 0",
        ok=("doctor --only ghost --grace 0 --fix",),
        no=("doctor --grace 0",),
        usage=_refused("doctor --dry-run")
        | {
            "doctor --only ghost,gohst": f"no such finding: 'gohst'; known findings: "
            f"{', '.join(Code)}\n",
        },
        listings=dict.fromkeys(
            ("doctor --grace 0", "doctor --grace 0 --fix --dry-run"), _OF_A_FINDING
        ),
        trials=(
            Trial("doctor --fix --grace 0 --only abandoned -o ids", "abandoned", waits),
            Trial("doctor --grace 0 -o json", "abandoned"),
        ),
        operations={"doctor's repairs": core.REPAIRS},
    ),
    "check": Row("check", elsewhere="tests/commands/test_check.py", objects=("check",)),
    "export": Row(
        "export",
        no=("export gone",),
        partial=("export w1 gone",),
        usage=_refused("export w1 --all"),
        trials=(Trial("export", "waiting"),),
    ),
    "import": Row(
        "import -",
        stdin=b'{"rwq_export": 1, "queue": "jobs"}\n{"id": "i1", "data": "x", "place": "main"}\n',
        ok=("import - < {export}",),
        no=("import - < {header}\nx\n",),
        partial=("import - -q none < {export}\nx\n",),
        usage=_refused("import"),
        trials=(Trial("import {home}/export -o ids", "nothing", waits),),
        operations={
            "restore": core.restoring(OnConflict.FAIL),
            "restore and skip": core.restoring(OnConflict.SKIP),
            "restore and replace": core.restoring(OnConflict.REPLACE),
        },
        heaviest=("restore and replace",),
    ),
    "help": Row(
        "help ls",
        usage={
            "help topics": "no command or topic 'topics'; the topics are options, states, "
            "exit-codes, environment, recipes\n",
            "help state": "no command or topic 'state'; try rwq help states\n",
            "help receipts": "no command or topic 'receipts'; try rwq help recipes\n",
            "help recipes x": "recipes is a topic, not a group; leave out x\n",
            "help ls x": "rwq ls has no command 'x'; see rwq ls --help\n",
        },
        unproved={69: "it needs no server"},
        is_local=True,
    ),
    **{
        f"context {what}": Row(
            f"context {what}{words}",
            untried="" if what in ("list", "show") else _FILES,
            is_local=True,
            elsewhere="tests/commands/test_context.py",
        )
        for what, words in {
            "list": "",
            "show": "",
            "set": " dev -u local:",
            "use": " dev",
            "rm": " dev",
        }.items()
    },
    "context check": Row("context check", elsewhere="tests/commands/test_context.py"),
    **{
        f"local {what}": Row(
            "local status",
            objects=("local status",),
            untried="" if what == "status" else "tests/local",
            is_local=True,
            elsewhere="tests/local",
        )
        for what in ("start", "stop", "status")
    },
    "demo": Row(
        "", untried="a server of its own", is_local=True, elsewhere="tests/end_to_end/test_demo.py"
    ),
    "completion": Row(
        "completion bash",
        usage=_refused("completion nothing"),
        unproved={1: "only if it cannot write", 69: "it needs no server"},
        is_local=True,
    ),
}
COMMANDS: dict[str, CommandInfo] = {command.path: command for command in all_commands()}
# The lines that are run; `top` and `demo` have a terminal and a server of their own.
LINES = {path: row.line for path, row in VERBS.items() if row.line and path in COMMANDS}
WITH_SERVER = [path for path in LINES if not VERBS[path].is_local]
OPERATIONS: dict[str, Operation] = {
    name: operation for row in VERBS.values() for name, operation in (row.operations or {}).items()
}
# The operations that are run on many items.
HEAVIEST = [n for row in VERBS.values() for n in row.heaviest or row.operations or ()]
TRIALS = tuple(chain.from_iterable(row.trials for row in VERBS.values()))


def words_of(path: str, *options: str) -> list[str]:
    """The words of a verb's line, with these options behind its name."""
    words = LINES[path].split()
    at = len(path.split())
    return [*words[:at], *options, *words[at:]]


def has_option(path: str, name: str) -> bool:
    """True if the command has this option."""
    return any(name in parameter.opts for parameter in COMMANDS[path].command.params)
