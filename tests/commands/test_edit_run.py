"""`rwq edit --run`: a command on the data of each chosen item, or of many, a line each."""

import json
import signal
import time

import pytest

from tests.conftest import Foreign, contents
from tests.driver import TIMEOUT_S, UNDO, Rwq, state_of, undo_files, until


@pytest.fixture
def numbers(foreign: Foreign) -> dict[bytes, object]:
    """Items with a number each, in several states; what there is then."""
    foreign.waiting(*(b"%d" % number for number in range(5)))
    foreign.leased(b"5")
    foreign.buried(b"6")
    for number in range(7):
        foreign.raw.set(f"jobs:item:{number}", json.dumps({"n": number}))
    return contents(foreign.raw)


def data(foreign: Foreign) -> dict[str, int]:
    """The number in the data of each item."""
    return {
        key.decode().rpartition(":")[2]: json.loads(foreign.raw.get(key))["n"]
        for key in foreign.raw.keys("jobs:item:*")
    }


@pytest.mark.parametrize("how", [(), ("--lines",)])
def test_place_and_lease_stay_and_one_undo_is_for_all(
    rwq: Rwq, foreign: Foreign, numbers: dict[bytes, object], how: tuple[str, ...]
) -> None:
    words = ("edit", "--where", "n>1", "--run", "sed 's/}/0}/'", *how)
    dry = rwq(*words, "--dry-run", "-o", "jsonl").jsonl
    assert contents(foreign.raw) == numbers
    result = rwq(*words, "-o", "jsonl")
    assert result.jsonl == dry
    assert result.notes.startswith(f"set 5; undo file {UNDO}/1.jsonl; ")
    assert data(foreign) == {"0": 0, "1": 1, **{f"{n}": 10 * n for n in range(2, 7)}}
    same = {key: value for key, value in contents(foreign.raw).items() if b":item:" not in key}
    assert same.items() <= numbers.items()
    assert rwq("undo", "--yes").code == 0
    assert contents(foreign.raw) == numbers


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--run", "grep nothing"), "the command ended with code 1: nothing on stderr"),
        (("--run", "echo why >&2; exit 3"), "the command ended with code 3: why"),
        (("--lines", "--run", "head -1"), "the command wrote 1 lines for 3 items"),
        (("--run", "true"), "the command wrote nothing for it, which needs --allow-empty"),
        (
            ("--lines", "--run", "sed s/.*//"),
            "the command wrote nothing for it, which needs --allow-empty",
        ),
        (
            ("--yes", "--lines", "--run", "sort -r"),
            "the command wrote the same lines or values in another order",
        ),
        (
            ("--yes", "--lines", "--run", "sed 's/}/,\"x\":1}/' | sort -r"),
            "the command wrote the same lines or values in another order",
        ),
        (("--lines", "--run", "kill -9 $$"), "the command ended with signal 9: nothing on stderr"),
    ],
)
def test_a_command_that_fails_leaves_the_data(
    rwq: Rwq, foreign: Foreign, numbers: dict[bytes, object], words: tuple[str, ...], reason: str
) -> None:
    result = rwq("edit", "-n", "3", *words)
    failures = "".join(f"rwq: {number}: {reason}; left as it is\n" for number in range(3))
    assert result.as_tuple() == (1, "", f"{failures}rejected 3\n")
    assert (contents(foreign.raw), undo_files(rwq)) == (numbers, [])
    if words[-1] == "grep nothing":
        known = rwq("edit", "-n", "3", *words, "-o", "json").json
        assert (known["rejected"], known["failures"][0]["reason"]) == (3, f"0: {reason}")


@pytest.mark.usefixtures("numbers")
def test_data_of_several_lines_is_edited_without_lines(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.set("jobs:item:1", "one\ntwo")
    foreign.raw.set("jobs:item:2", b"\xff\0")
    result = rwq("edit", "1", "2", "--lines", "--run", "sed s/$/!/")
    said = "rwq: 1: it has several lines, which --lines cannot tell from items; left as it is\n"
    assert (result.code, result.notes.startswith(said)) == (3, True)
    assert rwq("edit", "1", "--run", "sed s/$/!/").code == 0
    assert foreign.raw.get("jobs:item:1") == b"one!\ntwo!"
    assert foreign.raw.get("jobs:item:2") == b"\xff\0!"


def test_json_that_is_not_any_more_is_asked_about(
    rwq: Rwq, foreign: Foreign, numbers: dict[bytes, object]
) -> None:
    words = ("edit", "-n", "3", "--lines", "--run", "cut -c2-")
    assert rwq(*words).code == 2
    code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"n\n")])
    assert code == 1
    said = b" ".join(seen.split())
    assert b"rwq will replace JSON with data that is not JSON in 3 items of jobs" in said
    assert (contents(foreign.raw), undo_files(rwq)) == (numbers, [])
    assert rwq(*words, "--yes").code == 0
    assert foreign.raw.get("jobs:item:0") == b'"n": 0}'


def test_one_question_is_about_all_that_it_breaks(
    rwq: Rwq, foreign: Foreign, numbers: dict[bytes, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches there are, and after everything else is done."""
    monkeypatch.setattr("rwq_cli.commands.edit.LINES_MAX", 2)
    words = ("edit", "--all", "--lines", "--run", "sed '/[1-4]/s/{//; s/}/0}/'")
    code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"n\n")], columns=300)
    assert b"rwq will replace JSON with data that is not JSON in 5 items of jobs (" in seen
    assert (code, b"declined after 2 edits; no more are made" in seen) == (3, True)
    assert data(foreign) == {**{f"{n}": n for n in range(5)}, "5": 50, "6": 60}
    assert rwq("undo", "--yes").code == 0
    assert contents(foreign.raw) == numbers
    code, seen = rwq.asked(*words, type_in=[(b"[y/N] ", b"y\n")], columns=300)
    assert (code, b"set 7; " in seen) == (0, True)
    assert rwq("undo", "--yes").code == 0
    assert contents(foreign.raw) == numbers


@pytest.mark.usefixtures("numbers")
def test_a_command_that_cannot_be_run_ends_it(rwq: Rwq) -> None:
    result = rwq("edit", "--all", "--run", "no-such-command")
    assert (result.code, "rwq: error: cannot run the command: " in result.notes) == (1, True)


@pytest.mark.parametrize(("number", "lines"), [(signal.SIGINT, ()), (signal.SIGTERM, ("--lines",))])
def test_a_signal_ends_what_runs(
    rwq: Rwq, numbers: dict[bytes, object], foreign: Foreign, number: int, lines: tuple[str, ...]
) -> None:
    run = "echo $$ >> pids; sleep 3600; cat"
    process = rwq.start("edit", "--all", "--yes", "--run", run, *lines)
    pids = rwq.home / "pids"
    until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert {state_of(int(pid)) for pid in pids.read_text().split()} <= {"", "Z"}
    assert contents(foreign.raw) == numbers
