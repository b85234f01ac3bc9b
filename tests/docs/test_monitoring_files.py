"""The alert rules and the board: valid, and every metric that they name exists."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from rwq_cli.core.inspect.server_status import server_status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.views.health import server_metrics
from rwq_cli.views.monitoring import queue_metrics
from tests.docs.pages import text_of

FILES = Path(__file__).parents[2] / "docs" / "monitoring"
METRIC = re.compile(r"\brwq_[a-z_]+\b")


def expressions(name: str) -> list[str]:
    text = (FILES / name).read_text("utf-8")
    if name.endswith(".yml"):
        groups = yaml.safe_load(text)["groups"]
        return [rule["expr"] for group in groups for rule in group["rules"]]
    board = json.loads(text)
    targets = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*targets, *(one["query"] for one in board["templating"]["list"])]


@pytest.mark.parametrize("name", ["rwq-rules.yml", "rwq-board.json"])
def test_every_metric_exists(queue: WorkQueue, name: str) -> None:
    metrics = [*server_metrics([server_status(queue.connection)]), *queue_metrics([], [])]
    existing = {f"rwq_{metric.name}" for metric in metrics}
    # Those of services are on the page.
    existing |= set(re.findall(r"`(rwq_[a-z_]+)`", text_of("docs/monitoring.md")))
    named = {metric for text in expressions(name) for metric in METRIC.findall(text)}
    assert named
    assert named - existing == set()


def test_promtool_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool")
    subprocess.run([promtool, "check", "rules", FILES / "rwq-rules.yml"], check=True)
