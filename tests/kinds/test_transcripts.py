"""What each verb says, word for word: results, summaries, notes and errors, on the lines of the
registry and on those of `transcripts/lines.txt`. What a terminal shows is in `test_screens.py`.

`pytest --inline-snapshot=fix tests/kinds/test_transcripts.py` writes them anew.
"""

import os
import re
import shlex
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest
from inline_snapshot import external_file

from tests.conftest import Foreign
from tests.driver import Result, Rwq
from tests.kinds.test_screens import CHANGING
from tests.servers import PrivateServer
from tests.verbs import COMMANDS, LINES, VERBS, fill

FOLDER = Path(__file__).parent / "transcripts"
MORE = (FOLDER / "lines.txt").read_text("utf-8").splitlines()
VARIABLE = re.compile(r"[A-Z_]+=")
VARYING = (
    ("[0-9a-f]{32}", "RANDOM"),
    # In CSV: process IDs, ages, and the size of an undo file.
    (r"(,w\d,,1,0),\d+", r"\1,PID"),
    (r"(,,)\d+(?=,\d+,data of)|(data of \w+,\d,)\d+(?=,)", r"\1\2AGE"),
    (r"(?<=,URL,)\d+(?=,)", "SIZE"),
    (r",\d*\.\d+(?=[,\n])", ",N"),
    (r"(flushed|restarted),note,\d+,0,\d+", r"\1,note,N"),
    (r'("(?:\w+_seconds|lease|flushed|restarted|count|left)": )[\d.]+', r"\1N"),
    # The size of an undo file, which names the server.
    (r'\t\d{3,4}\t|(?<="bytes": )\d{3,4}\b', "SIZE"),
    # The leases of the queue are new, and last for a minute.
    (r"\b[1-5]\d{4}\b", "TTL"),
    (r"127\.0\.0\.1:\d{4,5}", "ADDRESS"),
    (r"(\w+@)[\w.-]+", r"\1HOST"),
    (r"-?\d{7,}", "BIG"),
    (r"\t\d+(\t\d+\tdata)|(_seconds\t)[\d.]+", r"\2\tN\1"),
    (r"\d+\.\d MiB", "SIZE"),
    (r"\d+ clients", "N clients"),
    *CHANGING[1:],
    (r"age>=TIME, server up TIME", "oldest TIME"),
    (r"flushed N time\b", "flushed N times"),
)


def _lines(verb: str) -> list[str]:
    """The lines of a verb; in those of the file, `\\n` stands for a newline."""
    paths = [path for path in VERBS if path.split()[0] == verb and not VERBS[path].elsewhere]
    rows = [VERBS[path] for path in paths]
    return [
        *(line for row in rows for lines in row.lines().values() for line in lines if line),
        *(f"{line} -o json" for row in rows for line in (*(row.listings or ()), *row.objects)),
        *(
            f"{path} -o {output}{LINES[path].removeprefix(path)}"
            for path in paths
            if COMMANDS[path].manual.fields() is not None
            for output in ("csv", "data")
        ),
        *(_unescaped(line) for line in MORE if verb in _words(line)[:1]),
    ]


def _unescaped(line: str) -> str:
    for escape, character in ((r"\n", "\n"), (r"\r", "\r"), (r"\0", "\0"), (r"\xff", "\udcff")):
        line = line.replace(escape, character)
    return line


def _words(line: str) -> list[str]:
    """The words of the last command of a line, without the variables before it."""
    words = line.partition(" < ")[0].rpartition("; ")[2].split()
    return list(dropwhile(lambda word: VARIABLE.match(word) is not None, words))


def _run(rwq: Rwq, line: str, stdin: bytes, variables: dict[str, str]) -> Result:
    words = shlex.split(line)
    own = dict(word.split("=", 1) for word in takewhile(VARIABLE.match, words))
    return rwq(*words[len(own) :], stdin=stdin, variables={**variables, **own})


@pytest.mark.needs("no-touch")
@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("verb", list(dict.fromkeys(path.split()[0] for path in VERBS)))
def test_a_verb_says_what_it_said(
    rwq: Rwq, server: PrivateServer, foreign: Foreign, verb: str
) -> None:
    variables = {
        **{name: str(rwq.home) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")},
        "EDITOR": "true",
        "TZ": "UTC",
    }
    transcript = []
    for line in _lines(verb):
        fill(foreign)
        (rwq.home / "rwq/config.toml").unlink(missing_ok=True)
        words, is_fed, stdin = line.replace("{url}", server.url).partition(" < ")
        if "{" in stdin:
            export = rwq("export").text
            stdin = stdin.replace("{export}", export)
            stdin = stdin.replace("{header}", export.partition("\n")[0])
        own_stdin = b"" if is_fed or words != "import -" else VERBS[verb].stdin
        *before, last = words.split("; ")
        for earlier in before:
            _run(rwq, earlier, b"", variables)
        result = _run(rwq, last, own_stdin or os.fsencode(stdin), variables)
        errors = "".join(f"! {text}\n" for text in result.notes.splitlines())
        text = result.out.decode(errors="backslashreplace")
        line = line.replace("\0", r"\0").replace("\udcff", r"\xff")
        transcript.append(f"$ rwq {line}\n{text}{errors}exit {result.code}\n")
    text = "\n".join(transcript).replace(str(rwq.home), "~").replace(server.url, "URL")
    text = text.replace(server.url.partition("://")[2], "SOCKET")
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    assert text == external_file(str(FOLDER / f"{verb}.txt"))
