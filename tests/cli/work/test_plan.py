"""The plan of a worker, made from its options without a server."""

import dataclasses
from math import inf
from pathlib import Path

from rwq_cli.core.work.job import OnFail
from rwq_cli.work.plan import Options, make_plan

OPTIONS = Options(
    words=[b"true"],
    task_dir=None,
    input=None,
    batch=None,
    keeps_result=False,
    jobs=1,
    lease_s=300,
    is_fair=False,
    max_time_s=None,
    kill_after_s=10,
    grace_s=None,
    retries=3,
    backoff_s=10,
    backoff_max_s=600,
    on_fail=OnFail.BURY,
    result_ttl_s=3600,
    drains=False,
    max_items=None,
    max_failures=None,
    idle_s=None,
    reconnect_s=300,
    rate=None,
    clean_s=None,
)
PATH = "/usr/bin:/bin"


def test_what_is_not_limited_is_endless() -> None:
    plan = make_plan(OPTIONS, PATH)
    assert plan.program in (b"/usr/bin/true", b"/bin/true")
    limits = [plan.work[name] for name in ("max_items", "max_failures", "idle_s", "rate")]
    assert limits == [inf] * 4
    plan = make_plan(dataclasses.replace(OPTIONS, jobs=0, rate=2.5, max_items=7), PATH)
    assert plan.work["concurrency"] >= 1
    assert (plan.work["rate"], plan.work["max_items"]) == (2.5, 7)


def test_a_task_directory_needs_no_program(tmp_path: Path) -> None:
    plan = make_plan(dataclasses.replace(OPTIONS, words=[], task_dir=str(tmp_path)), PATH)
    assert plan.program is None
    assert plan.invocations({}, b"", "/tmp").task_dir == bytes(tmp_path)
