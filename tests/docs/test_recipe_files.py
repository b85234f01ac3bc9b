"""The files of docs/recipes: what their formats allow, and run as they stand."""

import gzip
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, next_line, until
from tests.service.managers import Manager, manager as manager

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
PAGE = (RECIPES / "README.md").read_text("utf-8")
UNITS = sorted((RECIPES / "systemd").iterdir())
PROGRAM = "/usr/local/bin/rwq"
pytestmark = pytest.mark.ci


def test_their_page_links_to_every_file() -> None:
    files = {path.relative_to(RECIPES) for path in RECIPES.rglob("*") if path.is_file()}
    assert {file for file in files if f"]({file})" not in PAGE} == {Path("README.md")}


def environment(rwq: Rwq, pairs: dict[str, str]) -> dict[str, str]:
    """The variables that a recipe sets; the server is that of the test."""
    assert pairs["RWQ_QUEUE"] == "jobs"
    return {**pairs, "RWQ_URL": rwq.variables["RWQ_URL"]}


def unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit; each may be given several times."""
    text, found = (RECIPES / "systemd" / name).read_text("utf-8"), dict[str, list[str]]()
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.M):
        found.setdefault(key, []).append(value)
    return found


def started_by(name: str) -> list[str]:
    """The words of rwq that a unit starts."""
    (line,) = unit(name)["ExecStart"]
    program, *words = shlex.split(line)
    assert program == PROGRAM
    return words


class TestSystemd:
    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
    def test_the_units_are_valid(self) -> None:
        result = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *map(str, UNITS)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        missing = re.compile(r".*: Command /\S+ is not executable: No such file or directory")
        assert [line for line in result.stderr.splitlines() if not missing.fullmatch(line)] == []

    def test_the_cleaning_process_is_ready_and_stops(
        self, rwq: Rwq, foreign: Foreign, manager: Manager
    ) -> None:
        foreign.abandoned(b"1")
        service = unit("rwq-clean.service")
        assert service["Type"] == ["notify"]
        pairs = dict(pair.split("=", 1) for pair in service["Environment"])
        variables = environment(rwq, pairs) | {"NOTIFY_SOCKET": manager.name}
        process = rwq.start(*started_by("rwq-clean.service"), variables=variables)
        assert manager.received() == b"READY=1"
        assert manager.received() == b"STATUS=jobs: returned 1 in 1 round"
        process.terminate()
        assert manager.received() == b"STOPPING=1"
        assert process.wait(TIMEOUT_S) == 0


def with_program(rwq: Rwq, words: list[str], path: str) -> list[str]:
    """The words, with a program in place of this one that keeps the data of each item."""
    program = rwq.home / "work"
    program.write_text('#!/bin/sh\ncat >"$HOME/$RWQ_ID"\n')
    program.chmod(0o755)
    assert words[-2:] == ["--", path]
    return [*words[:-1], str(program)]


def test_the_worker_of_systemd_works_and_stops(
    rwq: Rwq, foreign: Foreign, manager: Manager
) -> None:
    foreign.waiting(b"1", b"2")
    words = with_program(rwq, started_by("rwq-work.service"), "/usr/local/bin/work")
    process = rwq.start(*words, variables={"NOTIFY_SOCKET": manager.name})
    assert manager.received() == b"READY=1"
    # Its cleans write history.
    until(lambda: {*foreign.raw.keys("jobs:*")} <= {b"jobs:history", b"jobs:history:hours"})
    assert (rwq.home / "1").read_bytes() == b"data of 1"
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_the_worker_in_bash_works(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2", b"a/../b%2F")
    (rwq.home / "done").mkdir()
    result = rwq.shell(f"{RECIPES / 'worker.sh'} --drain -Q")
    assert (result.code, result.text) == (0, "")
    assert gzip.decompress((rwq.home / "done" / "2.gz").read_bytes()) == b"data of 2"
    assert (rwq.home / "done" / "a%2F..%2Fb%252F.gz").exists()
    lines = (RECIPES / "worker.sh").read_text("utf-8").splitlines()
    assert len([line for line in lines if not line.startswith("# ")]) == 3


def test_each_line_of_the_crontab_runs(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"1")
    foreign.data(b"2")
    lines = (RECIPES / "cron" / "rwq.crontab").read_text("utf-8").splitlines()
    kept = [line for line in lines if line and not line.startswith("#")]
    pairs = dict(line.split("=", 1) for line in kept if re.match(r"[A-Z_]+=", line))
    entries = [line.split(maxsplit=5) for line in kept[len(pairs) :]]
    times = [time for *times, _ in entries for time in times]
    assert [time for time in times if not re.fullmatch(r"[0-9*/,-]+", time)] == []
    commands = [command for *_, command in entries]
    # cron makes newlines of them.
    assert [command for command in commands if "%" in command] == []
    variables = environment(rwq, pairs)
    del variables["PATH"]
    results = [rwq.shell(command, variables) for command in commands]
    assert [(each.code, each.text, each.notes) for each in results] == [
        (0, "", "returned 1\n"),
        (0, "", "returned 1\n"),
        (0, "", ""),
        (0, "", ""),
        (0, "", ""),
    ]
    assert len((rwq.home / "jobs.jsonl").read_text("utf-8").splitlines()) == 4


class TestDocker:
    def test_the_container_runs_the_cleaning_process(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.abandoned(b"1")
        docker = rwq.home / "docker"
        docker.write_text(
            '#!/bin/sh\necho "$@" >&2\n'
            'while [ "$1" != rwq ]; do [ "$1" != --health-cmd ] || echo "$2" >health; shift; done\n'
            'shift\nset -- "$@" --listen 127.0.0.1:0 --grace 0\nexec python -m rwq_cli "$@"\n'
        )
        docker.chmod(0o755)
        path = f"{rwq.home}:{Path(sys.executable).parent}:/usr/bin:/bin"
        process = rwq.start(
            command=["sh", str(RECIPES / "docker" / "run.sh")],
            variables={"PATH": path},
            bufsize=0,
        )
        assert next_line(process.stderr).startswith(b"run --rm --name rwq-clean -e RWQ_URL=unix://")
        lines = [next_line(process.stderr) for _ in range(3)]
        assert lines[0].startswith(
            b"rwq: running a light clean of jobs every 30s and a deep one every 6h on unix://"
        )
        found = re.match(rb"rwq: listening on http://127.0.0.1:(\d+)", lines[1])
        assert found
        assert lines[2] == b"returned 1\n"
        check = (rwq.home / "health").read_text()
        assert "http://127.0.0.1:9113/healthz" in check
        check = check.replace("9113", found[1].decode())
        assert subprocess.run(check, shell=True, env={"PATH": path}, check=False).returncode == 0
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
        stopped = subprocess.run(check, shell=True, env={"PATH": path}, capture_output=True)
        assert stopped.returncode == 1


def documents(path: Path) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def container(document: Any) -> Any:
    spec = document["spec"]
    while "containers" not in spec:
        spec = (spec.get("template") or spec.get("jobTemplate"))["spec"]
    (found,) = spec["containers"]
    return found


def test_the_deep_clean_of_the_timer_runs(rwq: Rwq, foreign: Foreign) -> None:
    assert unit("rwq-clean-deep.timer")["OnCalendar"] == ["*-*-* 00/6:00:00"]
    foreign.data(b"1")
    assert rwq(*started_by("rwq-clean-deep.service")).as_tuple() == (0, "", "returned 1\n")


def test_the_deep_clean_of_the_cron_job_runs(rwq: Rwq, foreign: Foreign) -> None:
    (job,) = documents(RECIPES / "kubernetes" / "deep-clean-cronjob.yaml")
    assert re.fullmatch(r"\S+ \S+ \S+ \S+ \S+", job["spec"]["schedule"])
    foreign.data(b"1")
    assert rwq(*container(job)["args"]).as_tuple() == (0, "", "returned 1\n")


class TestKubernetes:
    def test_the_workers_of_keda_watch_lists_that_exist(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2")
        deployment, secret, scaled = documents(RECIPES / "kubernetes" / "worker-keda.yaml")
        found = container(deployment)
        assert found["command"] == ["rwq"]
        args = [word.replace(":9113", "127.0.0.1:0") for word in found["args"]]
        assert args != found["args"]
        words = with_program(rwq, args, "/app/work")
        at = words.index("--")
        result = rwq.process(*words[:at], "--drain", *words[at:])
        assert result.code == 0, result.notes
        assert (rwq.home / "2").read_bytes() == b"data of 2"
        assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
        watched = [trigger["metadata"] for trigger in scaled["spec"]["triggers"]]
        names = [metadata["listName"].encode() for metadata in watched]
        assert names == [foreign.keys.main, foreign.keys.processing]
        # As in the url of the other manifests' secret; KEDA reads numbers from strings.
        server = {"address": "redis:6379", "databaseIndex": "0", "enableTLS": "false"}
        assert [metadata | server for metadata in watched] == watched
        assert {type(value) for metadata in watched for value in metadata.values()} == {str}
        parameters = {each["parameter"] for each in secret["spec"]["secretTargetRef"]}
        assert parameters == {"username", "password"}

    def test_the_cleaner_of_a_pod_answers_and_ends_in_time(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"1")
        (deployment,) = documents(RECIPES / "kubernetes" / "clean-deployment.yaml")
        template = deployment["spec"]["template"]
        assert template["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
        found = container(deployment)
        words = [word.replace(":9113", "127.0.0.1:0") for word in found["args"]]
        pod = rwq.start(*words, bufsize=0)
        lines = [next_line(pod.stderr).decode() for _ in range(3)]
        assert lines[2] == "returned 1\n"
        probe = found["livenessProbe"]
        assert probe["httpGet"] == {"path": "/healthz", "port": "metrics"}
        url, timeout_s = lines[1].split()[-1], probe["timeoutSeconds"]
        assert urlopen(url + probe["httpGet"]["path"], timeout=timeout_s).status == 200
        metrics = urlopen(f"{url}/metrics", timeout=timeout_s).read().decode()
        assert {
            'rwq_up{queue="jobs"} 1',
            'rwq_waiting_items{queue="jobs"} 1',
            'rwq_cleaned_items_total{queue="jobs",action="returned"} 1',
            'rwq_clean_rounds_total{depth="light"} 1',
        } <= {*metrics.splitlines()}
        status = Path(f"/proc/{pod.pid}/status")
        if status.exists():
            peak_kib = int(re.findall(r"VmHWM:\s+(\d+)", status.read_text())[0])
            limit_mib = int(found["resources"]["limits"]["memory"].removesuffix("Mi"))
            assert peak_kib / 1024 < limit_mib / 2
        # Its rounds are 30 s apart.
        pod.terminate()
        assert pod.wait(TIMEOUT_S) == 0
