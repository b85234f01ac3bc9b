"""The text format of Prometheus.

It takes forty lines. Measured, prometheus_client takes 27 ms and 4 MiB, besides the HTTP server of
the standard library, which it imports, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rwq_cli.output.escape import escaped, escaped_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str | bytes]


class Metric(NamedTuple):
    """A metric with its samples.

    Attributes:
        name: Its name without the prefix `rwq_`; that of a counter ends in `_total`.
        help: What it measures.
        samples: The labels of each sample, and its value; None for unknown.
        kind: Its type: `gauge` or `counter`.
    """

    name: str
    help: str
    samples: Sequence[tuple[Labels, float | None]]
    kind: str = "gauge"


def exposition(metrics: Iterable[Metric]) -> str:
    """The lines of metrics; a metric of which no value is known is left out."""
    return "".join(map(_lines, metrics))


def _lines(metric: Metric) -> str:
    name = f"rwq_{metric.name}"
    samples = [
        f"{name}{_label_text(labels)} {_number(value)}\n"
        for labels, value in metric.samples
        if value is not None
    ]
    head = f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    return head + "".join(samples) if samples else ""


def _label_text(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_value(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _value(value: str | bytes) -> str:
    text = escaped(value) if isinstance(value, bytes) else escaped_text(value)
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.10g}"
