"""On a terminal: tables that fit, colour only where it means something, no colour when unwanted."""

import re
from itertools import product

import pytest
import redis
from rich.cells import cell_len

from tests.conftest import Foreign
from tests.driver import Rwq

COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def plain(seen: bytes) -> list[str]:
    """The lines of a screen without its colours."""
    return COLOUR.sub(b"", seen).decode().replace("\r\n", "\n").splitlines()


@pytest.fixture
def filled(foreign: Foreign) -> Foreign:
    foreign.waiting(*(f"{number:032x}".encode() for number in range(3)))
    foreign.abandoned(b"f" * 32)
    foreign.leased(b"e" * 32, holder=b"rwq:ann@some-host.example.org:1234567", ttl_ms=3_600_000)
    for item_id in (b"f" * 32, b"e" * 32):
        foreign.raw.set(foreign.keys.item(item_id), b'{"user": 42, "text": "%s"}' % (b"x" * 300))
    return foreign


@pytest.mark.usefixtures("filled")
@pytest.mark.needs("no-touch")
class TestWidth:
    def test_the_width_of_a_real_terminal_is_found(self, rwq: Rwq) -> None:
        shown = [plain(rwq.on_terminal("ls", "all", columns=columns)[1]) for columns in (90, 120)]
        assert [max(map(len, lines)) for lines in shown] == [90, 120]

    def test_columns_is_the_width_in_a_pipe_or_80(self, rwq: Rwq) -> None:
        widths = {"90": 90, "120": 120, "": 80, "0": 80, "-5": 80, "many": 80}
        tables = {c: rwq("ls", "all", "-o", "table", variables={"COLUMNS": c}) for c in widths}
        assert {columns: max(map(len, t.lines)) for columns, t in tables.items()} == widths

    @pytest.mark.parametrize(
        "name",
        [
            "cc34" + "0" * 55 + "47b49",
            "i" * 300,
            "日本語" * 50,
            "e\u0301" * 200,
            "👩\u200d💻👍🏽" * 40,
        ],
    )
    def test_a_table_never_wraps_whatever_the_ids(
        self, rwq: Rwq, foreign: Foreign, name: str
    ) -> None:
        foreign.raw.flushall()
        foreign.waiting(name.encode())
        for state in (b"a", b"l", b"h"):
            foreign.abandoned(state + name.encode())
        for state in (b"l", b"h"):
            foreign.lease(state + name.encode(), holder=name.encode())
        rwq("bury", "--reason", name[:200], name)
        foreign.waiting(b"w" + name.encode())
        Foreign(foreign.raw, name.encode()).waiting(b"x")
        Foreign(foreign.raw, b"other").waiting(b"x")
        looks = ("ls", "ls all", "ls buried", "leases", "queues", "stats -q jobs -q other")
        runs = [*product(looks, (40, 80, 120)), ("lease -n 3", 40)]
        screens = [rwq.on_screen(*line.split(), columns=columns) for line, columns in runs]
        assert [code for code, _ in screens] == [0] * len(runs)
        rows = {run: plain(screen) for run, (_, screen) in zip(runs, screens, strict=True)}
        assert [run for run in runs if len(rows[run]) < 3] == []
        assert [run for run in runs if max(map(cell_len, rows[run])) > run[1]] == []

    def test_empty_columns_are_left_out(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.raw.flushall()
        foreign.abandoned(b"a")
        header = plain(rwq.on_screen("leases", columns=160)[1])[0]
        assert header.split() == ["ID", "STATE", "HELD", "SIZE", "DATA"]
        foreign.raw.set("jobs:item:a", "-")
        assert plain(rwq.on_screen("leases", columns=160)[1])[0] == header.rstrip()
        foreign.raw.set("jobs:item:a", "")
        header = plain(rwq.on_screen("leases", columns=160)[1])[0]
        assert header.split() == ["ID", "STATE", "HELD", "SIZE"]

    @pytest.mark.ci
    def test_a_long_table_has_one_header(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.raw.flushall()
        foreign.waiting(*(b"%d" % number for number in range(10_500)))
        rows = plain(rwq.on_screen("ls", "-n", "0", "--fields", "position,id", columns=160)[1])
        assert len(rows) == 2 + 10_500 + 1
        assert [rows[0], rows[2], rows[-2]] == ["   #  ID", "   0  0", "10499  10499"]

    def test_suggested_commands_are_not_wrapped(self, rwq: Rwq, raw: redis.Redis) -> None:
        """Broken at the edge by us, it could not be copied in one go."""
        item_id = "i" * 70
        Foreign(raw).abandoned(item_id.encode())
        _, seen = rwq.on_screen("show", item_id, columns=80)
        assert f"rwq release -q jobs {item_id}".encode() in COLOUR.sub(b"", seen)


@pytest.mark.usefixtures("filled")
class TestColour:
    @pytest.mark.parametrize(
        ("words", "variables", "on_screen", "in_a_pipe"),
        [
            ("", {}, True, False),
            ("", {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False, False),
            ("", {"TERM": "dumb"}, False, False),
            ("", {"CLICOLOR_FORCE": "1"}, True, True),
            ("", {"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
            ("", {"CLICOLOR_FORCE": "0", "FORCE_COLOR": ""}, True, False),
            ("--color never", {"CLICOLOR_FORCE": "1"}, False, False),
            ("--color always --color never", {}, False, False),
            ("--color=always", {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
        ],
    )
    def test_options_and_variables_decide(
        self, rwq: Rwq, words: str, variables: dict[str, str], on_screen: bool, in_a_pipe: bool
    ) -> None:
        line = ("leases", *words.split())
        seen = rwq.on_screen(*line, columns=160, variables=variables)[1]
        piped = rwq(*line, "-o", "table", variables=variables).out
        texts, coloured = (seen, piped), [on_screen, in_a_pipe]
        assert [b"\x1b[31mabandoned" in text for text in texts] == coloured
        assert [b"\x1b" in text for text in texts] == coloured

    @pytest.mark.parametrize("output", ["plain", "json", "jsonl", "csv", "ids"])
    def test_formats_for_programs_have_no_colour(self, rwq: Rwq, output: str) -> None:
        assert b"\x1b" not in rwq.on_screen("ls", "all", "-o", output)[1]


class TestDefaults:
    def test_nothing_to_lease_is_a_sentence(self, rwq: Rwq) -> None:
        code, seen = rwq.on_screen("lease")
        assert (code, plain(seen)) == (1, ["Nothing to lease in jobs."])

    def test_a_quiet_listing_has_no_footer_and_no_sentence(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        assert rwq.on_screen("ls", "-Q") == (0, b"")
        foreign.waiting(b"a")
        code, seen = rwq.on_screen("ls", "-Q")
        assert code == 0
        assert b"shown" not in seen

    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            ("add", "reading items from the terminal, one per line; Ctrl-D ends\n"),
            ("rm - --yes", "reading IDs from the terminal, one per line; Ctrl-D ends\n"),
            ("complete a --result -", "reading the result from the terminal; Ctrl-D ends\n"),
            ("complete a --result /dev/null", ""),
            ("edit a -f - --yes", "reading the payload from the terminal; Ctrl-D ends\n"),
            ("edit a -f /dev/null --yes", ""),
        ],
    )
    def test_what_reads_the_terminal_says_so(
        self, rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, line: str, sentence: str
    ) -> None:
        foreign.waiting(b"a")
        monkeypatch.setattr("rwq_cli.environment.Environment.stdin_is_terminal", True)
        result = rwq(*line.split(), stdin=b"a\n")
        assert (result.code, result.notes.startswith(sentence)) == (0, True)
        assert ("terminal" in result.notes) is (sentence != "")
