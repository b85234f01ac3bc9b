"""Writes the pictures in `docs/screens`: what rwq shows on terminals of several widths.

    python -m docs.screens

Each command runs as a process on a terminal of that width, with a server and a home of its own.
"""

import fcntl
import io
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import redis
from rich.cells import chop_cells
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

from rwq_cli.core import NewItem, Server, WorkQueue, connect
from rwq_cli.core.items.add import add_batches, batched_items
from rwq_cli.core.keys import QueueKeys
from tests.servers import running_server

WIDTHS = (40, 80, 100, 120, 200)
LIGHT = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        *((36, 41, 47), (188, 28, 40), (22, 110, 52), (138, 92, 0)),
        *((9, 80, 190), (120, 60, 180), (20, 108, 122), (110, 118, 126)),
    ],
    [
        *((87, 96, 106), (188, 28, 40), (22, 110, 52), (138, 92, 0)),
        *((9, 80, 190), (120, 60, 180), (20, 108, 122), (140, 149, 159)),
    ],
)
THEMES = {"dark": SVG_EXPORT_THEME, "light": LIGHT}
_SHA = "{:064x}"
# How long ago the oldest data seem to have been used.
AGE_S = 50
_SEED = 0x9E3779B97F4A7C15F39CC0605CEDC834


class Screen(NamedTuple):
    """A picture.

    Attributes:
        name: The first part of its file's name.
        line: The command line.
        asks: Whether the command ends with a question, which is not answered.
    """

    name: str
    line: str
    asks: bool = False


# In an incident: see `fill_with_abandoned`.
INCIDENT = (
    Screen("queues", "rwq queues"),
    Screen("leases-by-holder", "rwq leases --by holder"),
)
SCREENS = (
    Screen("ls", "rwq ls all"),
    Screen("leases", "rwq leases"),
    Screen("show", "rwq show thumbnail-0031"),
    Screen("stats", "rwq stats"),
    Screen("doctor", "rwq doctor"),
    Screen("question", "rwq mv --state abandoned --to quarantine", asks=True),
    Screen("question-of-many", "rwq purge -q mail-2025", asks=True),
)


# After the others: see `move_away`.
UNDO = (Screen("undo", "rwq undo -q mail-2025", asks=True),)


def move_away(home: Path) -> None:
    """Move a queue, as if ann had done that a while ago."""
    words = "mv -q mail-2025 --all --to mail-archive --yes=prod -Q"
    subprocess.run(
        [sys.executable, "-m", "rwq_cli", *words.split()], env={"HOME": str(home)}, check=True
    )
    file = home / ".local" / "state" / "rwq" / "undo" / "1.jsonl"
    header, rest = file.read_text().split("\n", 1)
    fields = json.loads(header)
    fields["exported_ms"] -= 13 * 60_000
    fields["undo"]["by"] = "ann@ops1"
    file.write_text(json.dumps(fields) + "\n" + rest)


def fill(raw: redis.Redis) -> None:
    """A queue with items in every state, as after a night with a broken host."""
    queue = WorkQueue(
        connect(Server(f"unix://{raw.connection_pool.connection_kwargs['path']}")), "mail"
    )
    data = {
        "welcome-8841": '{"to": "ana@example.com", "template": "welcome"}',
        _SHA.format(_SEED**2 % 2**256): '{"to": "müller@example.org", "template": "invoice"}',
        "newsletter-2026-11/zürich": '{"to": "jürg@example.ch", "template": "newsletter"}',
        "receipt-5120": '{"to": "kim@example.com", "template": "receipt"}',
        "receipt-5121": '{"to": "lee@example.com", "template": "receipt"}',
    }
    for item_id, payload in data.items():
        queue.add(payload.encode(), item_id=item_id.encode())
    old = queue.sibling(b"mail-2025")
    items = [NewItem(b"%d" % number, b"{}") for number in range(1201)]
    list(add_batches(old, batched_items(items)))
    keys = queue.keys
    held = {
        "thumbnail-0031": ("worker-3@render-02:4711", 252),
        "thumbnail-0032": ("worker-4@render-02:4712", 61),
        _SHA.format(_SEED**3 % 2**256): ("rwq:ana@laptop:9133", 1790),
    }
    for item_id, (holder, left_s) in held.items():
        raw.set(keys.item(item_id.encode()), '{"image": "s3://photos/0031.jpg", "width": 640}')
        raw.lpush(keys.processing, item_id)
        for key in (keys.lease(item_id.encode()), keys.old_lease(item_id.encode())):
            raw.set(key, holder, ex=left_s)
    for item_id in ("thumbnail-0017", "thumbnail-0018", "invoice-2210"):
        raw.set(keys.item(item_id.encode()), '{"image": "s3://photos/broken.jpg", "width": 640}')
        raw.lpush(keys.processing, item_id)
    raw.hset(keys.returns, mapping={"thumbnail-0017": 3, "thumbnail-0018": 3})
    queue.add(b'{"to": "late@example.com"}', item_id=b"reminder-17", delay_s=5400)
    queue.add(b'{"to": "nobody@example.invalid"}', item_id=b"welcome-8702")
    queue.bury(b"welcome-8702", reason=b"550 5.1.1 no such user")
    age(raw, "mail:item:*")


def fill_with_abandoned(raw: redis.Redis) -> None:
    """Queues of which one has 50,000 items in processing: the workers of 40,000 have died."""
    raw.flushall()
    for queue, waiting, abandoned, leased in (
        ("billing", 14, 0, 3),
        ("mail", 81_240, 40_000, 10_000),
        ("thumbnails", 1_207, 6, 24),
    ):
        keys = QueueKeys(queue.encode())
        ids = [b"%s-%05d" % (queue.encode(), n) for n in range(waiting + abandoned + leased)]
        raw.mset({keys.item(item_id): "{}" for item_id in ids})
        taken, others = ids[: abandoned + leased], ids[abandoned + leased :]
        for key, listed in ((keys.processing, taken), (keys.main, others)):
            for start in range(0, len(listed), 10_000):
                raw.lpush(key, *listed[start : start + 10_000])
        with raw.pipeline(transaction=False) as calls:
            for number, item_id in enumerate(taken[abandoned:]):
                holder = f"worker-{number % 4}@send-0{number % 3}:47{number % 4}1"
                for key in (keys.lease(item_id), keys.old_lease(item_id)):
                    calls.set(key, holder, ex=240 + number % 50)
            calls.execute()


def await_age(raw: redis.Redis) -> None:
    """Wait until the server is up for long enough: rwq believes no age that is longer."""
    while raw.info("server")["uptime_in_seconds"] < AGE_S:
        time.sleep(1)


def age(raw: redis.Redis, pattern: str) -> None:
    """Make the data seem to have been last used some time ago, each a little earlier."""
    for number, key in enumerate(sorted(raw.scan_iter(pattern))):
        value = raw.dump(key)
        assert value is not None
        raw.restore(key, 0, value, replace=True, idletime=AGE_S - 3 * number)


def shown(
    screen: Screen, home: Path, columns: int, more_variables: Mapping[str, str] | None = None
) -> bytes:
    """What the command shows on a terminal of this width."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            variables = {"HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            variables |= more_variables or {}
            command = [sys.executable, "-m", "rwq_cli", *shlex.split(screen.line)[1:]]
            os.execve(sys.executable, command, variables)
        finally:
            os._exit(99)
    seen = b""
    with suppress(OSError):
        while piece := os.read(terminal, 1 << 16):
            seen += piece
            if screen.asks and seen.endswith(b": "):
                os.kill(child, signal.SIGKILL)
                break
    os.close(terminal)
    os.waitpid(child, 0)
    # Progress that was erased is not shown.
    return re.sub(rb".*\r\x1b\[2K", b"", seen.replace(b"\r\n", b"\n"))


def terminal_lines(text: Text, columns: int) -> Iterator[Text]:
    """The lines of a text as a terminal breaks them: anywhere."""
    for line in text.split("\n", allow_blank=True):
        ends, end = [], 0
        for part in chop_cells(line.plain, columns):
            end += len(part)
            ends.append(end)
        yield from line.divide(ends[:-1])


def picture(
    name: str, lines: Iterable[tuple[str, bytes]], columns: int, theme: TerminalTheme
) -> str:
    """The SVG of a terminal with command lines, and what each shows.

    Args:
        name: What the picture's classes and definitions begin with.
        lines: Command lines with their output.
        columns: The width of the terminal.
        theme: Its colours.
    """
    console = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for number, (line, seen) in enumerate(lines):
        if number:
            console.print()
        prompt = Text.assemble(("$ ", "bold green"), line)
        output = Text.from_ansi(seen.decode().rstrip("\n"))
        for text in (prompt, output):
            for part in terminal_lines(text, columns):
                console.print(part, soft_wrap=True)
    return console.export_svg(title="rwq", theme=theme, unique_id=name)


def main() -> None:
    """Write every picture."""
    folder = Path(__file__).parent / "screens"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home, running_server() as server:
        config = Path(home, ".config", "rwq", "config.toml")
        config.parent.mkdir(parents=True)
        config.write_text(
            f'current = "prod"\n\n[contexts.prod]\nurl = "{server.url}"\nqueue = "mail"\n'
            'color = "red"\nprotect = "type"\n'
        )
        config.chmod(0o600)
        with server.client() as raw:
            await_age(raw)
            for fills, screens in (
                (lambda: fill(raw), SCREENS),
                (lambda: move_away(Path(home)), UNDO),
                (lambda: fill_with_abandoned(raw), INCIDENT),
            ):
                fills()
                for screen in screens:
                    for columns in WIDTHS:
                        write(folder, screen, columns, shown(screen, Path(home), columns))


def write(folder: Path, screen: Screen, columns: int, seen: bytes) -> None:
    """Write the pictures of a screen."""
    for name, theme in THEMES.items():
        drawn = picture(f"{screen.name}-{columns}", [(screen.line, seen)], columns, theme)
        (folder / f"{screen.name}-{columns}-{name}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
