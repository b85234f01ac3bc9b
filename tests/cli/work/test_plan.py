"""The plan of a worker, made from its options without a server."""

from math import inf
from pathlib import Path

from rwq_cli.work.plan import Options, make_plan

OPTIONS = Options([b"true"])
PATH = "/usr/bin:/bin"


def test_what_is_not_limited_is_endless() -> None:
    plan = make_plan(OPTIONS, PATH)
    assert plan.program in (b"/usr/bin/true", b"/bin/true")
    limits = [plan.work[name] for name in ("max_items", "max_failures", "idle_s", "rate")]
    assert limits == [inf] * 4
    plan = make_plan(OPTIONS._replace(jobs=0, rate=2.5, max_items=7), PATH)
    assert plan.work["concurrency"] >= 1
    assert (plan.work["rate"], plan.work["max_items"]) == (2.5, 7)


def test_a_task_directory_needs_no_program(tmp_path: Path) -> None:
    plan = make_plan(OPTIONS._replace(words=[], task_dir=str(tmp_path)), PATH)
    assert plan.program is None
    assert plan.invocations({}, b"", "/tmp").task_dir == bytes(tmp_path)
