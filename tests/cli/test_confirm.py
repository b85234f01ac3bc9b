"""Asking on the terminal: default no, the queue's name for many, and stdin is left alone."""

import io
import os
import select
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rwq_cli.cli.confirm import Declined, confirm, is_confirmed
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from tests.conftest import Foreign, contents
from tests.driver import Rwq, configure, until
from tests.servers import PrivateServer
from tests.verbs import LINES, VERBS, fill, has_option

Ask = Callable[..., str]
Configured = Callable[..., Settings]
SERVER = "redis://ops:***@db1/0"


@pytest.fixture
def settings(tmp_path: Path) -> Configured:
    """The settings of a run on a server that has a context only if that is given."""

    def made(context: str = "", url: str | None = None, **given: object) -> Settings:
        text = f'[contexts.prod]\nurl = "redis://db1"\n{context}\n' if context else ""
        configure(tmp_path, text)
        where = {"context": "prod"} if context and url is None else {"url": url or PLAIN_URL}
        out = io.BytesIO()
        environment = Environment({"HOME": str(tmp_path)}, io.BytesIO(), out, out)
        return Settings(environment, {**where, "color": "never", **given})

    return made


PLAIN_URL = "redis://ops:hunter2@db1/0"
TYPE, ASK, NONE = 'protect = "type"', 'protect = "ask"', 'protect = "none"'


@pytest.fixture
def ask(settings: Configured, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Confirm something on a terminal where this is typed; returns what was asked."""

    def asked(
        *typed: str, context: str = "", items: int = 1, queue: str = "jobs", **more: Any
    ) -> str:
        leased = more.pop("leased", 0)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            monkeypatch.setattr(
                "rwq_cli.cli.confirm.open_terminal", lambda: os.dup(theirs.fileno())
            )
            for line in typed:
                ours.send(line.encode())
            ours.shutdown(socket.SHUT_WR)
            confirm(settings(context, **more), "remove {}", items, queue, leased=leased)
            theirs.close()
            return b"".join(iter(lambda: ours.recv(4096), b"")).decode()

    return asked


class TestConfirm:
    def test_only_y_and_yes_confirm(self, ask: Ask) -> None:
        for answer in ("y\n", "Y\n", "yes\n", " y \n"):
            ask(answer)
        for answer in ("\n", "n\n", "yep\n", "jobs\n", "\x04"):
            with pytest.raises(Declined):
                ask(answer)
        with pytest.raises(Declined):
            ask()

    def test_the_question_has_numbers_queue_and_server(self, ask: Ask) -> None:
        end = "Continue? [y/N] "
        assert ask("y\n") == f"rwq will remove 1 item of jobs on {SERVER}. {end}"
        assert (
            ask("y\n", context=NONE, items=999, leased=3)
            == f"rwq will remove 999 items of jobs (3 of them leased) on prod. {end}"
        )
        assert (
            ask("y\n", context=NONE, url=PLAIN_URL, items=2)
            == f"rwq will remove 2 items of jobs on {SERVER} (context prod). {end}"
        )
        coloured = ask("y\n", context='color = "red"', color="auto")
        assert "on \x1b[1;31mprod\x1b[0m. Continue?" in coloured
        assert ask(context=TYPE, items=0) == "", "nothing is asked of nothing"

    def test_a_thousand_items_need_the_queues_name(self, ask: Ask) -> None:
        assert (
            ask(" jobs \n", items=1000, queue=" jobs ")
            == f"rwq will remove 1,000 items of  jobs  on {SERVER}. Type the queue's name to "
            "continue: "
        ), "spaces around a name count"
        for answer in ("y\n", "yes\n", "Jobs\n", "job\n", " jobs\n"):
            with pytest.raises(Declined):
                ask(answer, items=1000)

    def test_a_protected_context_is_always_typed(self, ask: Ask) -> None:
        name = "Type the context's name to continue: "
        assert ask("prod\n", context=TYPE) == f"rwq will remove 1 item of jobs on prod. {name}"
        said = f"rwq will remove 1,000 items of jobs on prod. {name}"
        assert ask("prod\n", context=TYPE, items=1000) == said
        for answers in (["y\n"], ["jobs\n"], ["prod2\n"], ["jobs\n", "prod\n"], ["\n"]):
            with pytest.raises(Declined):
                ask(*answers, context=TYPE, items=1000)


@pytest.mark.parametrize("url", [None, PLAIN_URL])
@pytest.mark.parametrize("has_terminal", [True, False])
def test_what_yes_confirms(
    settings: Configured, monkeypatch: pytest.MonkeyPatch, url: str | None, *, has_terminal: bool
) -> None:
    monkeypatch.setattr("rwq_cli.cli.confirm.has_terminal", lambda: has_terminal)

    def confirmed(context: str, *, yes: bool, **options: object) -> bool | str:
        try:
            return is_confirmed(settings(context, url=url, **options), yes=yes)
        except InvalidArgument as error:
            return f"{error.message}; {error.hint}"

    contexts = ("", NONE, ASK, TYPE)
    error = "context prod is protected; use --yes=prod to confirm"
    typed = False if has_terminal else error
    answers = [confirmed(context, yes=True) for context in contexts]
    assert answers == [True, True, not has_terminal, typed]
    assert [confirmed(context, yes=False) for context in contexts] == [False] * 4
    by_name = [confirmed(context, yes=True, yes_for="prod") for context in contexts[1:]]
    assert by_name == [True] * 3


def test_an_id_behind_the_name_is_an_id(rwq: Rwq, server: PrivateServer, foreign: Foreign) -> None:
    configure(rwq.home, f'[contexts.prod]\nurl = "{server.url}"\n{TYPE}\n')
    foreign.waiting(b"a")
    assert rwq("rm", "--yes=prod", "a").code == 0


def test_what_was_typed_before_is_no_answer(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.waiting(b"a")
    ours, theirs = os.openpty()
    open_file = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda path, *more, **named: (
            os.dup(theirs) if path == "/dev/tty" else open_file(path, *more, **named)
        ),
    )
    os.write(ours, b"y\n")
    until(lambda: select.select([theirs], [], [], 0)[0])
    seen = b""

    def answer() -> None:
        nonlocal seen
        while b"[y/N] " not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, b"n\n")

    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        assert rwq("rm", "a").code == 1
        answered.result()
    assert foreign.raw.llen("jobs:queue") == 1


class TestOnTerminal:
    def test_ctrl_c_changes_nothing(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        code, seen = rwq.on_terminal("release", "a", "--force", type_in=[(b"[y/N] ", b"\x03")])
        assert code == 130
        assert seen.endswith((b"^C\r\n", b"interrupted: nothing released\r\n"))
        assert contents(foreign.raw) == before

    def test_the_answer_is_not_read_from_stdin(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", b"y", b"c")
        words, given = ("release", "-", "--force"), b"a\ny\nc\n"
        code, _ = rwq.asked(*words, stdin=given, type_in=[(b"[y/N] ", b"n\n")])
        assert (code, foreign.raw.exists("jobs:queue")) == (1, 0)
        code, seen = rwq.asked(*words, stdin=given, type_in=[(b"[y/N] ", b"y\n")])
        assert (code, b"3 items of jobs" in seen) == (0, True)
        assert foreign.raw.lrange("jobs:queue", 0, -1)[::-1] == [b"a", b"y", b"c"]

    def test_control_characters_of_a_name_are_escaped(self, rwq: Rwq, foreign: Foreign) -> None:
        name = b"\x1b[2Jjobs"
        Foreign(foreign.raw, name).leased(b"a")
        code, seen = rwq.asked(
            *("release", "a", "--force", "-q", name.decode()), type_in=[(b"N] ", b"n\n")]
        )
        assert code == 1
        assert b"\\x1b[2Jjobs" in seen
        assert b"\x1b[2J" not in seen


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize(
    "path", [path for path in LINES if has_option(path, "--yes") and has_option(path, "--dry-run")]
)
def test_a_dry_run_ends_alike_on_a_terminal(rwq: Rwq, foreign: Foreign, path: str) -> None:
    """It asks nothing."""
    fill(foreign)
    line, own_stdin = LINES[path].removesuffix("--list"), VERBS[path].stdin
    if path == "undo":
        # The last one leaves nothing to undo.
        assert [rwq("rm", item_id, "--yes").code for item_id in ("w1", "gone")] == [0, 1]
    words = [*line.replace("--yes", "").split(), "--dry-run"]
    code, _ = rwq.asked(*words, stdin=own_stdin, type_in=[])
    assert code == rwq(*words, stdin=own_stdin).code
