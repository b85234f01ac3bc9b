"""What the options of `rwq work` ask for, without a server."""

import io
from math import inf
from pathlib import Path

from rwq_cli.cli.settings import Settings
from rwq_cli.commands.working import WorkerOptions
from rwq_cli.environment import Environment

VARIABLES = {"PATH": "/usr/bin:/bin", "RWQ_URL": "redis://here", "TMPDIR": "/tmp/x"}
SETTINGS = Settings(Environment(VARIABLES, *(io.BytesIO() for _ in range(3))))
OPTIONS = WorkerOptions(SETTINGS, [b"true"])


def test_what_is_not_limited_is_endless() -> None:
    OPTIONS.check()
    assert OPTIONS.find_program() in (b"/usr/bin/true", b"/bin/true")
    loop = OPTIONS.of_loop()
    limits = [loop[name] for name in ("max_items", "max_failures", "idle_s", "rate")]
    assert limits == [inf] * 4
    loop = OPTIONS._replace(jobs=0, rate=2.5, max_items=7).of_loop()
    assert loop["concurrency"] >= 1
    assert (loop["rate"], loop["max_items"]) == (2.5, 7)


def test_a_task_directory_needs_no_program(tmp_path: Path) -> None:
    options = OPTIONS._replace(words=None, task_dir=str(tmp_path))
    options.check()
    assert options.find_program() is None
    invocations = options.make_invocations(None)
    assert invocations.task_dir == bytes(tmp_path)
    assert invocations.file_directory == "/tmp/x"
