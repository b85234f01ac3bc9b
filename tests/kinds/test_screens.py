"""The whole screen of every verb: tables, footers, notes and colours.

`pytest --inline-snapshot=fix tests/kinds/test_screens.py` writes them anew.
"""

import re
from pathlib import Path

import pytest
from inline_snapshot import external_file

from tests.conftest import Foreign
from tests.driver import Rwq
from tests.servers import PrivateServer
from tests.verbs import LINES, VERBS, fill

# What differs from run to run.
CHANGING = (
    (r"\x1b\[([\d;]*)m", r"<\1>"),
    (r"[0-9a-f]{32}|\b\d{13}\b", "RANDOM"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE"),
    (r"(Valkey|Redis) \d[\w.]+", "SERVER"),
    (r"just now|\b(\d+(\.\d+)?(ms|s|m|h|d))+\b( ago)?", "TIME"),
    (r"\b\d+(\.\d+)? [kMG]?B\b", "SIZE"),
    (r"\w+@[\w.-]+:\d+", "HOLDER"),
    (r"(flushed|restarted) +\d+(?:,\d{3})*", r"\1 N"),
    (r" {2,}|[─━]{2,}", "  "),
    # Numbers are aligned with the times.
    (r"<0> +(?=\d+\n)", "<0>"),
)
# They show what this machine and its server are, or are generated.
ELSEWHERE = {"context", "export", "local", "doctor", "completion", "stats", "help"}


@pytest.mark.needs("no-touch")
@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("path", [path for path in LINES if path.split()[0] not in ELSEWHERE])
def test_the_screen_of_a_verb_is_as_it_was(
    rwq: Rwq, server: PrivateServer, foreign: Foreign, path: str
) -> None:
    fill(foreign)
    rwq.variables = {**rwq.variables, "COLORTERM": "", "TZ": "UTC"}
    words = LINES[path].split()
    if VERBS[path].stdin:
        (rwq.home / "in").write_bytes(VERBS[path].stdin)
        words = [str(rwq.home / "in") if word == "-" else word for word in words]
    code, screen = rwq.on_screen(*words, columns=100)
    text = screen.decode().replace(str(rwq.home), "~").replace(server.url, "URL")
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    file = Path(__file__).parent / "screens" / f"{path.replace(' ', '-')}.txt"
    assert f"{text}exit code {code}\n" == external_file(str(file))
