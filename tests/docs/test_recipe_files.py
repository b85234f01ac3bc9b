"""The files of docs/recipes: what their formats allow, and run as they stand."""

import configparser
import gzip
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import redis

from rwq_cli.core.keys import QueueKeys
from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, until
from tests.processes import COMMAND
from tests.service.managers import Manager
from tests.tls import TlsFronts

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
PAGE = (RECIPES / "README.md").read_text("utf-8")
UNITS = sorted((RECIPES / "systemd").iterdir())
MANIFESTS = sorted((RECIPES / "kubernetes").iterdir())
PROGRAM = "/usr/local/bin/rwq"


def test_their_page_links_to_every_file() -> None:
    for path in filter(Path.is_file, RECIPES.rglob("*")):
        if path.name != "README.md":
            assert f"]({path.relative_to(RECIPES)})" in PAGE


def environment(rwq: Rwq, pairs: dict[str, str]) -> dict[str, str]:
    """The variables that a recipe sets; the server is that of the test."""
    assert pairs["RWQ_QUEUE"] == "jobs"
    return {**pairs, "RWQ_URL": rwq.variables["RWQ_URL"]}


def unit(path: Path) -> configparser.RawConfigParser:
    class Many(dict[str, Any]):
        """A setting that is given several times has all of its values."""

        def __setitem__(self, key: str, value: Any) -> None:
            if key in self and isinstance(value, list):
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Many, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return parser


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
        self, rwq: Rwq, foreign: Foreign, tmp_path: Path
    ) -> None:
        foreign.abandoned(b"1")
        service = unit(RECIPES / "systemd" / "rwq-clean.service")["Service"]
        program, *words = shlex.split(service["ExecStart"])
        assert (program, service["Type"]) == (PROGRAM, "notify")
        pairs = dict(pair.split("=", 1) for pair in service["Environment"].splitlines())
        manager = Manager(str(tmp_path / "notify"), str(tmp_path / "notify"))
        variables = environment(rwq, pairs) | {"NOTIFY_SOCKET": manager.name}
        process = rwq.start(*words, variables=variables)
        assert manager.received() == b"READY=1"
        assert manager.received() == b"STATUS=jobs: returned 1 in 1 round"
        process.terminate()
        assert manager.received() == b"STOPPING=1"
        assert process.wait(TIMEOUT_S) == 0
        manager.close()

    def test_the_deep_clean_of_the_timer_runs(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.data(b"1")
        timer = unit(RECIPES / "systemd" / "rwq-clean-deep.timer")["Timer"]
        assert timer["OnCalendar"] == "*-*-* 00/6:00:00"
        service = unit(RECIPES / "systemd" / "rwq-clean-deep.service")["Service"]
        program, *words = shlex.split(service["ExecStart"])
        assert program == PROGRAM
        result = rwq(*words)
        assert result.as_tuple() == (0, "", "returned 1\n")


def with_program(rwq: Rwq, words: list[str], path: str) -> list[str]:
    """The words, with a program in place of this one that keeps the data of each item."""
    program = rwq.home / "work"
    program.write_text('#!/bin/sh\ncat >"$HOME/$RWQ_ID"\n')
    program.chmod(0o755)
    assert words[-2:] == ["--", path]
    return [*words[:-1], str(program)]


def test_the_worker_of_systemd_works_and_stops(rwq: Rwq, foreign: Foreign, tmp_path: Path) -> None:
    foreign.waiting(b"1", b"2")
    service = unit(RECIPES / "systemd" / "rwq-work.service")["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == PROGRAM
    manager = Manager(str(tmp_path / "notify"), str(tmp_path / "notify"))
    variables = {"NOTIFY_SOCKET": manager.name}
    process = rwq.start(*with_program(rwq, words, "/usr/local/bin/work"), variables=variables)
    assert manager.received() == b"READY=1"
    until(lambda: foreign.raw.keys("jobs:*") == [])
    assert (rwq.home / "1").read_bytes() == b"data of 1"
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    manager.close()


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
    commands = []
    for line in kept[len(pairs) :]:
        *times, command = line.split(maxsplit=5)
        assert all(re.fullmatch(r"[0-9*/,-]+", time) for time in times)
        # cron makes newlines of them.
        assert "%" not in command
        commands.append(command)
    variables = environment(rwq, pairs)
    del variables["PATH"]
    results = [rwq.shell(command, variables) for command in commands]
    assert [(each.code, each.text, each.notes) for each in results] == [
        (0, "", "returned 1\n"),
        (0, "", "returned 1\n"),
        (0, "", ""),
    ]


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

    def test_the_image_has_rwq_as_its_program(self) -> None:
        steps = instructions(RECIPES / "docker" / "Dockerfile")
        assert [word for word, _ in steps] == [
            *("FROM", "COPY", "COPY", "RUN"),
            *("FROM", "COPY", "ENV", "RUN", "USER", "ENTRYPOINT"),
        ]
        bases = [rest.split()[0] for word, rest in steps if word == "FROM"]
        assert bases == ["python:3.12-slim"] * 2
        # A number, and not that of root.
        assert int(dict(steps)["USER"]) > 0
        assert dict(steps)["ENTRYPOINT"] == '["rwq"]'

    def test_the_image_is_built_from_files_that_exist_and_keeps_no_cache(self) -> None:
        steps = instructions(RECIPES / "docker" / "Dockerfile")
        copied = [rest.split() for word, rest in steps if word == "COPY"]
        for *sources, _to in (words for words in copied if not words[0].startswith("--from=")):
            assert [name for name in sources if not (ROOT / name).exists()] == []
        # What the last stage takes from the first is there, and the program is on PATH in it.
        ((_, venv, to),) = (words for words in copied if words[0] == "--from=build")
        assert venv == to
        assert f"PATH={venv}/bin:$PATH" in dict(steps)["ENV"]
        built, _ = (rest for word, rest in steps if word == "RUN")
        installs = [run for run in built.split("&&") if " install " in run or " wheel " in run]
        assert len(installs) == 2
        assert all("--no-cache-dir" in run for run in installs)


def instructions(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, each with the rest of its lines."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def documents(path: Path) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text("utf-8")))


# The fields that a recipe may have, from the references of Kubernetes and KEDA.
FIELDS = {
    *("apiVersion", "kind", "metadata", "spec", "name", "labels", "annotations"),
    *("replicas", "selector", "matchLabels", "template", "terminationGracePeriodSeconds"),
    *("containers", "image", "args", "command", "env", "value", "valueFrom", "secretKeyRef"),
    *("key", "optional", "ports", "containerPort", "livenessProbe", "httpGet", "path", "port"),
    *("periodSeconds", "timeoutSeconds", "resources", "requests", "limits", "cpu", "memory"),
    *("securityContext", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsNonRoot"),
    *("runAsUser", "schedule", "concurrencyPolicy", "startingDeadlineSeconds", "jobTemplate"),
    *("backoffLimit", "restartPolicy", "scaleTargetRef", "minReplicaCount", "maxReplicaCount"),
    *("pollingInterval", "cooldownPeriod", "triggers", "type", "address", "listName"),
    *("listLength", "activationListLength", "authenticationRef", "secretTargetRef", "parameter"),
    *("databaseIndex", "enableTLS", "volumes", "volumeMounts", "mountPath", "emptyDir"),
}
VERSIONS = {
    "Deployment": "apps/v1",
    "CronJob": "batch/v1",
    "ScaledObject": "keda.sh/v1alpha1",
    "TriggerAuthentication": "keda.sh/v1alpha1",
}
# Their keys are names.
_OPEN = ("labels", "annotations", "matchLabels")


def fields(value: Any) -> set[str]:
    """The names of all fields in a document."""
    if isinstance(value, list):
        return {name for each in value for name in fields(each)}
    if not isinstance(value, dict):
        return set()
    inner = {name for key, each in value.items() if key not in _OPEN for name in fields(each)}
    return set(value) | inner


def container(document: Any) -> Any:
    spec = document["spec"]
    while "containers" not in spec:
        spec = (spec.get("template") or spec.get("jobTemplate"))["spec"]
    (found,) = spec["containers"]
    return found


class TestKubernetes:
    @pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
    def test_the_fields_are_known(self, path: Path) -> None:
        for document in documents(path):
            assert document["apiVersion"] == VERSIONS[document["kind"]]
            assert fields(document) - FIELDS == set()

    def test_the_cleaning_process_is_alive(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.abandoned(b"1")
        (deployment,) = documents(RECIPES / "kubernetes" / "clean-deployment.yaml")
        labels = deployment["spec"]["selector"]["matchLabels"]
        assert deployment["spec"]["template"]["metadata"]["labels"] == labels
        found = container(deployment)
        (port,) = (each["containerPort"] for each in found["ports"])
        assert found["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
        words = [word.replace(f":{port}", "127.0.0.1:0") for word in found["args"]]
        assert words != found["args"]
        process = rwq.start(*words, bufsize=0)
        lines = [next_line(process.stderr).decode() for _ in range(3)]
        assert lines[2] == "returned 1\n"
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0

    def test_the_deep_clean_of_the_cron_job_runs(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.data(b"1")
        (job,) = documents(RECIPES / "kubernetes" / "deep-clean-cronjob.yaml")
        assert re.fullmatch(r"\S+ \S+ \S+ \S+ \S+", job["spec"]["schedule"])
        assert rwq(*container(job)["args"]).as_tuple() == (0, "", "returned 1\n")

    def test_the_workers_of_keda_work(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2")
        deployment, _, scaled = documents(RECIPES / "kubernetes" / "worker-keda.yaml")
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

    def test_keda_watches_the_lists_of_the_queue(self) -> None:
        _, secret, scaled = documents(RECIPES / "kubernetes" / "worker-keda.yaml")
        triggers = scaled["spec"]["triggers"]
        keys = QueueKeys(b"jobs")
        names = [trigger["metadata"]["listName"].encode() for trigger in triggers]
        assert names == [keys.main, keys.processing]
        for trigger in triggers:
            assert trigger["type"] == "redis"
            assert trigger["authenticationRef"]["name"] == secret["metadata"]["name"]
            # As in the url of the other manifests' secret.
            assert trigger["metadata"]["address"] == "redis:6379"
            assert (trigger["metadata"]["databaseIndex"], trigger["metadata"]["enableTLS"]) == (
                "0",
                "false",
            )
            # KEDA reads numbers from strings.
            assert {type(value) for value in trigger["metadata"].values()} == {str}
        parameters = {each["parameter"] for each in secret["spec"]["secretTargetRef"]}
        assert parameters == {"username", "password"}

    def test_the_workers_of_keda_reach_a_server_with_user_database_and_tls(
        self, rwq: Rwq, start_server: StartServer, tmp_path: Path
    ) -> None:
        """What the first lines of the manifest say of `rediss://worker@...`."""
        server = start_server()
        fronts = TlsFronts(tmp_path)

        def connect() -> socket.socket:
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(server.socket))
            return made

        try:
            port = fronts.open(connect)
            raw = redis.Redis(unix_socket_path=str(server.socket), db=3)
            raw.execute_command("ACL", "SETUSER", "worker", "on", ">hunter2", "~*", "&*", "+@all")
            Foreign(raw).waiting(b"1")
            deployment, _, _ = documents(RECIPES / "kubernetes" / "worker-keda.yaml")
            args = [word.replace(":9113", "127.0.0.1:0") for word in container(deployment)["args"]]
            words = with_program(rwq, args, "/app/work")
            at = words.index("--")
            variables = {
                "RWQ_URL": f"rediss://worker@localhost:{port}/3?ssl_ca_certs={fronts.authority}",
                "RWQ_PASSWORD": "hunter2",
            }
            result = rwq.process(*words[:at], "--drain", *words[at:], variables=variables)
            assert result.code == 0, result.notes
            assert (rwq.home / "1").read_bytes() == b"data of 1"
            assert raw.dbsize() == 0
        finally:
            fronts.close()


# A container, as far as there is one without an engine: process 1 of its own namespace, on files
# that cannot be written, without a way to more rights, and with few processes.
POD = (
    *(
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--mount",
        "setpriv",
        "--no-new-privs",
        "--",
    ),
    *("prlimit", "--nproc=200:200", "--nofile=1024:1024", "--"),
    *("sh", "-c", 'mount --bind / / && mount -o remount,ro,bind / && exec "$@"', "sh"),
)
HAS_PODS = subprocess.run([*POD, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not HAS_PODS, reason="this machine allows no namespaces")
class TestPods:
    """The signals and limits of Kubernetes: SIGTERM to process 1, and SIGKILL after the grace."""

    @pytest.fixture
    def start(self, rwq: Rwq) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
        pods: list[subprocess.Popen[bytes]] = []

        def start(*words: str) -> "subprocess.Popen[bytes]":
            pods.append(
                subprocess.Popen(
                    [*POD, *COMMAND, *words],
                    env=rwq.variables,
                    cwd=rwq.home,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                )
            )
            return pods[-1]

        yield start
        for pod in pods:
            pod.kill()
            pod.wait()

    @staticmethod
    def terminate(pod: "subprocess.Popen[bytes]") -> None:
        children = Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)

    @staticmethod
    def peak_mib(pod: "subprocess.Popen[bytes]") -> float:
        children = Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()
        status = Path(f"/proc/{children[0]}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024

    def test_the_cleaning_process_answers_and_ends_in_its_time(
        self, start: Callable[..., "subprocess.Popen[bytes]"], foreign: Foreign
    ) -> None:
        foreign.abandoned(b"1")
        (deployment,) = documents(RECIPES / "kubernetes" / "clean-deployment.yaml")
        found = container(deployment)
        pod = start(*(word.replace(":9113", "127.0.0.1:0") for word in found["args"]))
        lines = [next_line(pod.stderr).decode() for _ in range(3)]
        url = lines[1].split()[-1]
        assert lines[2] == "returned 1\n"
        probe = found["livenessProbe"]
        answer = urlopen(url + probe["httpGet"]["path"], timeout=probe["timeoutSeconds"])
        assert answer.status == 200
        limit = found["resources"]["limits"]["memory"]
        assert self.peak_mib(pod) < int(limit.removesuffix("Mi")) / 2
        self.terminate(pod)
        # Its rounds are 30 s apart.
        assert pod.wait(TIMEOUT_S) == 0

    def test_a_worker_finishes_what_runs_and_takes_no_more(
        self, start: Callable[..., "subprocess.Popen[bytes]"], foreign: Foreign
    ) -> None:
        foreign.waiting(b"1", b"2")
        deployment, _, _ = documents(RECIPES / "kubernetes" / "worker-keda.yaml")
        words = [word.replace(":9113", "127.0.0.1:0") for word in container(deployment)["args"]]
        words[words.index("-j") + 1] = "1"
        # It leaves a process behind, which process 1 has to reap.
        leaves = "setsid sleep 0.1 >/dev/null 2>&1 & echo begins >&2; sleep 2"
        pod = start(*words[:-1], "sh", "-c", leaves)
        while next_line(pod.stderr) != b"begins\n":
            pass
        self.terminate(pod)
        _, told = pod.communicate(timeout=TIMEOUT_S)
        assert (pod.returncode, told.splitlines()[-1]) == (0, b"completed 1")
        assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"2"]
        assert foreign.raw.exists("jobs:item:1", "jobs:returns", "jobs:processing") == 0

    def test_a_worker_that_is_killed_after_the_grace_loses_nothing(
        self, start: Callable[..., "subprocess.Popen[bytes]"], rwq: Rwq, foreign: Foreign
    ) -> None:
        """A pod whose grace is too short: its item runs again, and no return is counted."""
        foreign.waiting(b"1")
        for _ in range(2):
            pod = start("work", "--for", "1s", "--", "sh", "-c", "echo begins >&2; sleep 60")
            while next_line(pod.stderr) != b"begins\n":
                pass
            self.terminate(pod)
            time.sleep(1.5)
            pod.kill()
            pod.wait()
            until(lambda: "returned 1" in rwq("clean", "light", "--bury-after", "2").notes)
        until(lambda: foreign.raw.lrange("jobs:queue", 0, -1) == [b"1"])
        assert foreign.raw.hgetall("jobs:returns") == {b"1": b"1"}
