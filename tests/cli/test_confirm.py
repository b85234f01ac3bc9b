"""Asking on the terminal: default no, the queue's name for many, and stdin is left alone."""

import pytest

from rwq_cli.cli.confirm import Declined, confirm
from tests.conftest import Foreign, contents
from tests.driver import Rwq


class TestConfirm:
    @pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", "YES\n", " y \n"])
    def test_y_and_yes_confirm(self, answer: str) -> None:
        confirm("remove {}", 3, "jobs", ask=lambda _: answer)

    @pytest.mark.parametrize("answer", ["", "\n", "n\n", "no\n", "yep\n", "jobs\n", "\x04"])
    def test_any_other_answer_declines(self, answer: str) -> None:
        with pytest.raises(Declined):
            confirm("remove {}", 3, "jobs", ask=lambda _: answer)

    def test_the_question_has_the_number_and_the_queue(self) -> None:
        asked: list[str] = []
        confirm("remove {}", 1, "jobs", ask=lambda text: asked.append(text) or "y")
        confirm("remove {}", 999, "jobs", ask=lambda text: asked.append(text) or "y")
        assert asked == [
            "rwq will remove 1 item of jobs. Continue? [y/N] ",
            "rwq will remove 999 items of jobs. Continue? [y/N] ",
        ]

    def test_a_thousand_items_need_the_queues_name(self) -> None:
        asked: list[str] = []
        confirm("remove {}", 1000, "jobs", ask=lambda text: asked.append(text) or "jobs\n")
        assert asked == ["rwq will remove 1,000 items of jobs. Type the queue's name to continue: "]
        for answer in ("y\n", "yes\n", "", "Jobs\n", "job\n"):
            with pytest.raises(Declined):
                confirm("remove {}", 1000, "jobs", ask=lambda _, a=answer: a)

    def test_spaces_around_a_name_count(self) -> None:
        confirm("remove {}", 1000, " jobs ", ask=lambda _: " jobs \n")

    def test_no_items_need_no_question(self) -> None:
        def never(_: str) -> str:
            raise AssertionError("asked")

        confirm("remove {}", 0, "jobs", ask=never)


class TestOnTerminal:
    def test_answering_y_runs_the_command(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a")
        code, seen = rwq.on_terminal("release", "a", "--force", type_in=[(b"[y/N] ", b"y\n")])
        assert code == 0
        assert b"1 item of jobs" in seen
        assert seen.endswith(b"released 1\r\n")
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]

    @pytest.mark.parametrize("keys", [b"\n", b"n\n", b"\x04"])
    def test_anything_else_changes_nothing(self, rwq: Rwq, foreign: Foreign, keys: bytes) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        code, seen = rwq.on_terminal("release", "a", "--force", type_in=[(b"[y/N] ", keys)])
        assert code == 1
        assert b"rwq: error: declined, nothing was changed" in seen
        assert contents(foreign.raw) == before

    def test_after_ctrl_d_the_message_is_on_its_own_line(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a")
        _, seen = rwq.on_terminal("release", "a", "--force", type_in=[(b"[y/N] ", b"\x04")])
        assert b"\nrwq: error: declined" in seen

    def test_ctrl_c_changes_nothing(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        code, seen = rwq.on_terminal("release", "a", "--force", type_in=[(b"[y/N] ", b"\x03")])
        assert code == 130
        assert b"Traceback" not in seen
        assert contents(foreign.raw) == before

    def test_the_answer_is_not_read_from_stdin(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", b"y", b"c")
        code, seen = rwq.on_terminal(
            "release", "-", "--force", stdin=b"a\ny\nc\n", type_in=[(b"[y/N] ", b"y\n")]
        )
        assert code == 0
        assert b"3 items of jobs" in seen
        assert foreign.raw.lrange("jobs:queue", 0, -1)[::-1] == [b"a", b"y", b"c"]

    def test_a_piped_yes_is_not_an_answer(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", ttl_ms=None)
        code, _ = rwq.on_terminal(
            "release", "a", "--force", stdin=b"y\n", type_in=[(b"[y/N] ", b"n\n")]
        )
        assert code == 1
        assert foreign.raw.exists("jobs:queue") == 0

    @pytest.mark.parametrize(("typed", "code"), [(b"jobs\n", 0), (b"y\n", 1), (b"\n", 1)])
    def test_a_thousand_items_need_the_queues_name(
        self, rwq: Rwq, foreign: Foreign, typed: bytes, code: int
    ) -> None:
        ids = [b"%04d" % number for number in range(1000)]
        foreign.leased(*ids)
        done, seen = rwq.on_terminal(
            *("release", "-", "--force"),
            stdin=b"\n".join(ids),
            type_in=[(b"Type the queue's name to continue: ", typed)],
        )
        assert done == code
        assert b"1,000 items of jobs" in seen
        assert foreign.raw.llen("jobs:queue") == (1000 if code == 0 else 0)

    def test_a_repeated_id_counts_once(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a")
        _, seen = rwq.on_terminal("release", "a", "a", "--force", type_in=[(b"N] ", b"n\n")])
        assert b"1 item of jobs" in seen

    def test_control_characters_in_a_queue_name_are_escaped(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        code, seen = rwq.on_terminal(
            *("release", "a", "--force", "-q", "\x1b[2Jjobs"), type_in=[(b"N] ", b"n\n")]
        )
        assert code == 1
        assert b"\\x1b[2Jjobs" in seen
        assert b"\x1b[2J" not in seen
        assert foreign.raw.keys() == []
