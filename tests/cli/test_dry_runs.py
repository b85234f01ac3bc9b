"""With `--dry-run` a command says what the run says, with its exit code, and changes nothing."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from rwq_cli.core.keys import QueueKeys
from rwq_cli.output.outcomes import WORDS
from tests.all_commands import all_commands
from tests.broken_queues import make_broken
from tests.digest import digest, make_idle, used_since
from tests.driver import Result, Rwq, undo_files

pytestmark = [pytest.mark.usefixtures("slept_s"), pytest.mark.needs("no-touch")]

# Those before the last prepare it. All of the IDs are on stdin.
LINES = [
    *("add --id-from line", "add --id-from line --unique", "add --id-from line --delay 1h"),
    *("lease -n 1000", "lease --id id-2 --id id-7 --id gone"),
    *("complete -", "complete --all --yes", "complete --state abandoned --state due --yes"),
    *("touch -", "touch --all"),
    *("release -", "release - --force --yes --front", "release --all --delay 1h --force --yes"),
    *("bury - --force --yes", "bury --all --reason why", "kick -", "kick --all"),
    *("edit id-2 -f {home}/new --yes", "edit id-2"),
    *("rm - --yes", "rm --id-glob *[0-4] --yes", "purge --yes"),
    *("mv - --to other --yes", "mv --all --to other --force --yes"),
    "rm --id-glob *[0-4] --yes; import {home}/export",
    "rm --id-glob *[0-4] --yes; import {home}/export --on-conflict replace --yes",
    *("rm --all --yes; undo --yes", "rm --id-glob *[0-4] --yes; add - --id-from line; undo --yes"),
    *("mv --all --to other --force --yes; undo --yes", "edit id-2 -f {home}/new --yes; undo --yes"),
    "edit id-2 -f {home}/new --yes; import {home}/export --on-conflict replace --yes; undo --yes",
    "rm --all --yes; purge --yes; undo --prune --older-than 0 --yes",
    *("clean light --grace 0", "clean deep --grace 0 --bury-after 2"),
    "doctor --fix --grace 0",
]
COUNT = 400
# What `--dry-run` of these says of no run.
ELSEWHERE = {"work": "tests/cli/work/test_commands.py"}


def test_every_command_with_dry_run_has_a_line() -> None:
    lines = [f"{line.split('; ')[-1]} " for line in LINES]
    with_dry_run = {
        known.path
        for known in all_commands()
        if any("--dry-run" in parameter.opts for parameter in known.command.params)
    }
    missing = {
        path for path in with_dry_run if not any(line.startswith(f"{path} ") for line in lines)
    }
    assert missing == ELSEWHERE.keys()


@pytest.fixture(autouse=True)
def files(bare_rwq: Rwq, monkeypatch: pytest.MonkeyPatch) -> None:
    """New data, an editor that adds a line, and where it has its files."""
    (bare_rwq.home / "new").write_bytes(b"new data")
    editor = bare_rwq.home / "editor"
    editor.write_text('#!/bin/sh\necho more >> "$1"\n')
    editor.chmod(0o755)
    bare_rwq.variables = {**bare_rwq.variables, "EDITOR": str(editor)}
    monkeypatch.setattr("tempfile.tempdir", str(bare_rwq.home))


# Which run it was, and what leasing an item changes; and of a finding the first few IDs, those that
# are left before the others.
_OF_THE_RUN = ("dry_run", "examples", "examples_b64")
_OF_A_LEASE = ("state", "lease", "position", "idle_seconds")


def _records(words: list[str], result: Result) -> list[Any]:
    """What was printed, in any order."""
    ignored = {*_OF_THE_RUN, *(_OF_A_LEASE if words[0] == "lease" else ())}
    return sorted(
        sorted((name, str(value)) for name, value in record.items() if name not in ignored)
        for record in result.jsonl
    )


def _notes(result: Result) -> str:
    """What was said of it, as a dry run says it, without the time left and what concerns files."""
    notes = re.sub(r"(; (undo file|to try the rest)|, a new or) .*", "", result.notes)
    notes = re.sub(r"^rwq: your text is in .*\n", "", notes)
    notes = re.sub(r"^dry run: (these would be leased now\n)?", "", notes, flags=re.MULTILINE)
    notes = re.sub(r"\bfor (\d+[smh])+|\bwould |(?<=nothing )to ", "", notes)
    return re.sub(r"(?<=nothing )[a-z]+|[a-z]+(?= \d)", lambda word: _infinitive(word[0]), notes)


def _infinitive(word: str) -> str:
    with suppress(KeyError):
        return {"fixed": "fix", "left": "leave"}.get(word) or WORDS[word].infinitive
    return word


def _files(rwq: Rwq) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in undo_files(rwq)}


@pytest.mark.parametrize("line", LINES)
def test_a_dry_run_says_what_the_run_does_and_changes_nothing(
    rwq: Rwq, raw: redis.Redis, line: str
) -> None:
    ids = [b"id-%d" % number for number in range(COUNT)]
    # A lease ends at the first data of another type.
    make_broken(raw, QueueKeys(b"jobs"), ids, COUNT, wrong_types=not line.startswith("lease -n"))
    stdin = b"".join(b"%b\n" % item_id for item_id in ids)
    (rwq.home / "export").write_bytes(rwq("export").out)
    *first, words = [part.format(home=rwq.home).split() for part in line.split("; ")]
    for prepared in first:
        rwq(*prepared, stdin=stdin)
    make_idle(raw, 1000)
    before, files = digest(raw), _files(rwq)
    dry = rwq(*words, "--dry-run", "-o", "jsonl", stdin=stdin)
    assert digest(raw) == before
    assert used_since(raw, 1000) == []
    assert _files(rwq) == files
    run = rwq(*words, "-o", "jsonl", stdin=stdin)
    assert (dry.code, _records(words, dry)) == (run.code, _records(words, run))
    assert _notes(dry) == _notes(run)
    assert run.out
