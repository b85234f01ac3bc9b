"""The screens and keys of `rwq top`, on a real server, without a terminal."""

import asyncio
import io
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, cast

import pytest
import redis
from inline_snapshot import external_file

from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.environment import Environment
from rwq_cli.top.watch import Overview
from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, configure
from tests.kinds.test_screens import CHANGING

pytest.importorskip("textual")

from textual import events
from textual.pilot import Pilot

from rwq_cli.top import session as session_module
from rwq_cli.top.app import TopApp
from rwq_cli.top.widgets import Listing

EVERY_S = 0.05
QUEUES_200 = 200


# The keys whose names are not their characters.
_CHARACTERS = {"slash": "/", "asterisk": "*", "question_mark": "?", "space": " ", "enter": "\r"}


class Live:
    """A running app with what it shows, and the command lines that it ran, with their options."""

    def __init__(
        self,
        app: TopApp,
        pilot: Pilot[None],
        ran: list[str],
        foreign: Foreign,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.app, self.pilot, self.ran = app, pilot, ran
        self.foreign, self.monkeypatch = foreign, monkeypatch

    @property
    def strips(self) -> list[Any]:
        """What is drawn, from top to bottom."""
        return list(self.app.screen._compositor.render_strips())

    @property
    def lines(self) -> list[str]:
        """What is shown, without the blanks at the ends of lines."""
        return [strip.text.rstrip() for strip in self.strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def rows(self) -> list[list[str]]:
        """The words of each row of the list; none while a screen is put together."""
        regions = [listing.region for listing in self.app.screen.query(Listing)]
        lines = [line for region in regions for line in self.lines[region.y : region.bottom]]
        return [line.split() for line in lines if line]

    @property
    def chosen(self) -> str:
        """The first word of the row under the cursor."""
        (row,) = [
            strip.text
            for strip in self.strips
            if any(segment.style and segment.style.reverse for segment in strip)
        ]
        return row.split()[0]

    @property
    def names(self) -> list[str]:
        """The first word of each row."""
        return [row[0] for row in self.rows]

    async def press(self, *keys: str) -> None:
        """Type keys, each once the one before is handled; the pilot would wait for much more."""
        for key in keys:
            character = key if len(key) == 1 else _CHARACTERS.get(key)
            self.app.post_message(events.Key(key, character))
            await self.pilot.pause(0.01)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        deadline = monotonic() + TIMEOUT_S
        while not condition():
            assert monotonic() < deadline, f"it shows:\n{self.text}\nit ran: {self.ran}"
            await self.pilot.pause(0.01)

    async def until_shown(self, text: str) -> None:
        """Wait until a text is shown."""
        await self.until(lambda: text in self.text)


Story = Callable[[Live], Awaitable[None]]


@pytest.fixture
def play(rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Plays a story on the app. Commands are noted, and not run."""
    # Without a terminal there is nothing to leave to a command.
    monkeypatch.setattr(TopApp, "suspend", lambda _app: nullcontext())

    def run(
        story: Story, *, size: tuple[int, int] = (120, 30), given: dict[str, Any] | None = None
    ) -> None:
        streams = (io.BytesIO(), io.BytesIO(), io.BytesIO())
        settings = Settings(Environment(rwq.variables, *streams), given or {"color": "always"})

        async def whole() -> None:
            ran: list[str] = []
            session = session_module.Session(settings, EVERY_S, cast(Any, None))

            def note(action: Any, options: Sequence[str]) -> None:
                ran.append(action.line(lines, " ".join(options)))

            lines = note.lines = session.run.lines  # type: ignore[attr-defined]
            session.run = cast(Any, note)
            app = TopApp(session)
            async with app.run_test(size=size) as pilot:
                await story(Live(app, pilot, ran, foreign, monkeypatch))

        asyncio.run(whole())

    return run


def plays(**options: Any) -> Callable[[Story], Callable[..., None]]:
    """Makes a test of a story."""

    def made(story: Story) -> Callable[..., None]:
        def played(play: Callable[..., None]) -> None:
            play(story, **options)

        played.__doc__ = story.__doc__
        return played

    return made


@pytest.fixture
def filled(foreign: Foreign, raw: redis.Redis) -> None:
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1", holder=b"worker-7")
    foreign.abandoned(b"a1")
    foreign.delayed(b"d1", 9_999_999_999_999)
    foreign.buried(b"b1", b"crashes")
    foreign.buried(b"b2", b"crashes")
    foreign.buried(b"b3", b"old format")
    Foreign(raw, b"mail:in").waiting(b"m1", b"m2", b"m3")
    Foreign(raw, b"mail:out").waiting(b"m1")


pytestmark = pytest.mark.usefixtures("filled")


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("columns", [120, 44])
def test_each_screen_is_as_it_was(play: Callable[..., None], columns: int) -> None:
    screens = []

    async def story(live: Live) -> None:
        await live.until(lambda: live.rows and not any("?" in row for row in live.rows))
        for keys, text in (
            ([], "jobs"),
            (["enter"], r"\nID.*l1"),
            (["tab"], r"\n#.*w1"),
            (["tab"], r"\nID.*d1"),
            (["tab"], r"\nID.*b1"),
            (["enter"], "It is buried."),
            (["escape", "K"], r"\$ rwq kick"),
            (["escape"], r"\nID.*b1.*Tab next"),
            (["question_mark"], "fg resumes"),
            (["escape", "shift+tab"], r"\nID.*d1"),
            (["escape"], "QUEUE▲"),
        ):
            await live.press(*keys)
            await live.until(lambda text=text: re.search(f"(?s){text}", live.text))
            # The first lines are about the server and its speed.
            screens.append("\n".join([f"== {' '.join(keys)}", *live.lines[2:], ""]))

    play(story, size=(columns, 30))
    # Where lines with times are wrapped depends on the times.
    varying = r"(?s)jobs  waiting.*?buried by|last used.{1,40}? ago"
    text = re.sub(varying, lambda match: " ".join(match[0].split()), "".join(screens))
    for pattern, name in (*CHANGING, ("[▁-█]+", "BARS"), (r"\n{2,}", "\n\n")):
        text = re.sub(pattern, name, text)
    assert text == external_file(str(Path(__file__).parent / f"screens-{columns}.txt"))


@plays()
async def test_numbers_follow_the_server(live: Live) -> None:
    live.foreign.waiting(b"w3", b"w4", b"w5")
    await live.until(lambda: live.rows[0][1] == "5")

    numbers = count(6)

    def is_rising() -> bool:
        # A rate is that of a moment, which a busy machine may miss.
        live.foreign.waiting(b"w%d" % next(numbers))
        return float(live.rows[0][6]) > 0

    await live.until(is_rising)
    assert "▇" in live.lines[3] or "█" in live.lines[3]


@plays()
async def test_a_filter_is_a_part_of_a_name_or_a_pattern(live: Live) -> None:
    await live.press("slash", *"mail")
    await live.until(lambda: live.names == ["mail:in", "mail:out"])
    await live.press("asterisk", "u", "asterisk")
    await live.until(lambda: live.names == ["mail:out"])
    # What was typed is no key.
    await live.press("q")
    await live.until_shown("No such queues.")
    await live.press("backspace", "enter", "s")
    await live.until_shown("filter mail*u*")
    await live.until_shown("WAITING▼")
    await live.press("S")
    await live.until_shown("WAITING▲")
    await live.press("S")
    await live.until_shown("WAITING▼")
    await live.press("escape")
    await live.until(lambda: len(live.names) == 3)
    assert "filter" not in live.lines[1]


def test_space_freezes(
    play: Callable[..., None], foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being read at that moment is not shown, and nothing more is read."""
    may_go_on = threading.Event()
    ticks = 0

    async def story(live: Live) -> None:
        watch = live.app.session.watch
        tick = watch.tick

        def slow_tick() -> Overview:
            nonlocal ticks
            ticks += 1
            may_go_on.wait(TIMEOUT_S)
            return tick()

        monkeypatch.setattr(watch, "tick", slow_tick)
        await live.until(lambda: ticks)
        await live.press("space")
        await live.until_shown("FROZEN")
        foreign.waiting(b"w3")
        may_go_on.set()
        await live.pilot.pause(5 * EVERY_S)
        assert (live.rows[0][1], ticks) == ("2", 1)
        # A screen that was not read yet is read.
        await live.press("enter")
        await live.until_shown("waiting 3")
        await live.press("escape")
        await live.until(lambda: live.names[:1] == ["jobs"])
        assert (live.rows[0][1], ticks) == ("2", 1)
        await live.press("space")
        await live.until(lambda: live.rows[0][1] == "3")
        assert "FROZEN" not in live.text

    play(story)


@plays(size=(200, 30))
async def test_a_command_for_a_queue_is_shown_before_it_runs(live: Live) -> None:
    for key, line in (
        ("r", "rwq release --state abandoned"),
        ("b", "rwq bury --state abandoned --reason 'by hand'"),
        ("K", "rwq kick --all"),
    ):
        await live.press(key)
        await live.until_shown(f"$ {line} -q jobs")
        await live.press("escape")
        await live.until(lambda: live.rows)
        assert live.ran == []
        await live.press(key)
        await live.until_shown("Enter runs it")
        await live.press(*" -n 1", "enter")
        await live.until(lambda: live.ran)
        assert live.ran.pop() == f"{line} -n 1 -q jobs".replace("'", "")


@pytest.mark.ci
@pytest.mark.needs("no-touch")
@plays(size=(200, 30))
async def test_a_command_for_an_item_has_its_options(live: Live) -> None:
    await live.press("enter")
    for tabs, first, keys in (
        (0, "a1", {"r": "release", "b": "bury --reason 'by hand'"}),
        (1, "w1", {"r": "release"}),
        (2, "b1", {"K": "kick", "b": "bury"}),
    ):
        await live.press(*["tab"] * tabs)
        await live.until_shown(f"data of {first}")
        for key, options in keys.items():
            await live.press(key)
            await live.until_shown(f"$ rwq {options} -q jobs {first}")
            await live.press("escape")
            await live.until(lambda: "$ rwq" not in live.text and live.rows)
    await live.press("tab")
    await live.until_shown("worker-7")
    await live.press("down", "r")
    await live.until_shown("$ rwq release --force -q jobs l1")
    await live.press("escape", "b")
    await live.until_shown("$ rwq bury --force --reason 'by hand' -q jobs l1")
    await live.press(*["backspace"] * 9, *"'it fails'", "enter")
    await live.until(lambda: live.ran)
    assert live.ran == ["rwq bury --force --reason it fails -q jobs l1"]


@plays()
async def test_edit_and_doctor_run_at_once(live: Live) -> None:
    await live.press("e")
    await live.until_shown("edit: choose an item")
    await live.press("d")
    await live.until(lambda: len(live.ran) == 1)
    assert live.ran == ["rwq doctor -q jobs"]
    await live.press("enter")
    await live.until_shown("worker-7")
    await live.press("e")
    await live.until(lambda: len(live.ran) == 2)
    assert live.ran[1:] == ["rwq edit -q jobs a1"]


def test_no_name_or_data_controls_the_terminal(play: Callable[..., None], raw: redis.Redis) -> None:
    name = b"[red]\x1b[2J[/]\xff"
    evil = Foreign(raw, name)
    evil.leased(b"[bold]\x1b]0;x\x07", holder=b"[/nothing]\x9b")
    evil.buried(b"b", b"[link=x]\x1b[31m")
    shown = r"[red]\x1b[2J[/]\xff"

    async def story(live: Live) -> None:
        assert live.names == [shown]
        await live.press("enter")
        await live.until_shown(r"[bold]\x1b]0;x\x07")
        assert r"[/nothing]\x9b" in live.text
        await live.until_shown(r"buried by reason:  1 [link=x]\x1b[31m")
        await live.press("enter")
        await live.until_shown("A worker has leased it.")
        await live.press("r")
        await live.until_shown("$ rwq release --force")
        assert r"$(printf -- '[red]\033[2J[/]\377')" in live.text
        assert all(text.isprintable() for text in live.lines)

    play(story, given={"queue": ["[[]red*"]}, size=(200, 40))


def test_two_hundred_queues_fit_any_width(play: Callable[..., None], raw: redis.Redis) -> None:
    for number in range(QUEUES_200):
        raw.lpush(f"queue-{number:03}:queue", *range(number + 1))

    async def story(live: Live) -> None:
        assert f"{QUEUES_200 + 3} queues" in live.lines[1]
        # No more is drawn than fits.
        assert len(live.rows) < 24
        for width in (40, 250, 61, 80):
            await live.pilot.resize_terminal(width, 24)
            await live.until(lambda width=width: live.strips[0].cell_length == width)
            assert {strip.cell_length for strip in live.strips} == {width}
            assert live.lines[2].startswith("QUEUE▲")
            assert "WAITING" in live.lines[2]
            assert len(live.lines) == 24
        await live.press("end")
        await live.until(lambda: live.chosen == "queue-199")

    play(story, size=(80, 24))


@plays()
async def test_a_lost_server_is_mentioned_and_waited_for(live: Live) -> None:
    watch = live.app.session.watch
    with live.monkeypatch.context() as patched:

        def fail() -> Overview:
            raise ConnectionLost("lost the connection to [b]x: \x1bit is gone")

        patched.setattr(watch, "tick", fail)
        await live.until_shown(r"trying again: lost the connection to [b]x: \x1bit is gone")
        assert len(live.rows) == 3
    await live.until(lambda: "trying again" not in live.text)


def test_the_context_has_its_colour(play: Callable[..., None], rwq: Rwq) -> None:
    url = rwq.variables["RWQ_URL"]
    configure(rwq.home, f'[contexts.prod]\nurl = "{url}"\ncolor = "red"\nread_only = true\n')

    async def story(live: Live) -> None:
        label = next(segment for segment in live.strips[0] if segment.text == "prod")
        assert label.style is not None
        assert label.style.color is not None
        assert label.style.color.number == 1
        assert "read-only" in live.lines[0]

    play(story, given={"context": "prod", "color": "always"})


def test_no_queue_is_a_sentence(play: Callable[..., None], raw: redis.Redis) -> None:
    raw.flushall()

    async def story(live: Live) -> None:
        assert "No queues here." in live.text
        await live.press("enter", "r", "e", "d", "slash", "x", "enter")
        assert live.ran == []

    play(story)


@plays()
async def test_a_total_and_only_those_with_trouble(live: Live) -> None:
    await live.until_shown("total")
    (total,) = [line.split() for line in live.lines if line.startswith("total")]
    assert total[:6] == ["total", "6", "1", "1", "1", "3"]
    await live.press("exclamation_mark")
    await live.until(lambda: live.names == ["jobs"])
    assert "only with trouble" in live.text
    await live.press("exclamation_mark")
    await live.until(lambda: len(live.names) == 3)


@pytest.mark.parametrize(
    ("wanted", "tabs", "item"),
    [
        ("0250", 0, "lease-0250"),
        ("worker-9", 0, "theirs"),
        ("hel", 0, "kept"),
        ("mad", 3, "odd"),
    ],
)
def test_a_filter_finds_what_is_not_among_the_first(
    play: Callable[..., None], foreign: Foreign, wanted: str, tabs: int, item: str
) -> None:
    foreign.raw.flushall()
    foreign.leased(*(b"lease-%04d" % number for number in range(300)))
    foreign.leased(b"theirs", ttl_ms=10**9, holder=b"worker-9")
    foreign.leased(b"kept", ttl_ms=None)
    for number in range(200):
        foreign.buried(b"%d" % number)
    foreign.buried(b"odd", reason=b"mad")

    async def story(live: Live) -> None:
        await live.press("enter")
        await live.until_shown("LEASES")
        await live.press(*["tab"] * tabs, "slash", *wanted, "enter")
        await live.until(lambda: live.names == [item])

    play(story)


def test_a_line_begins_with_what_was_written_down(
    play: Callable[..., None], raw: redis.Redis
) -> None:
    for minute in range(30):
        raw.xadd("jobs:history", {"waiting": minute % 2 * 1000}, f"{(minute + 1) * 60_000}-0")

    async def story(live: Live) -> None:
        assert "█▁█▁█▁█" in live.lines[3]

    play(story, size=(200, 30))
