"""The text format of Prometheus.

It takes thirty lines. prometheus_client was measured to take 27 ms and 4 MiB, not counting the HTTP
server of the standard library, which it also imports.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rwq_cli.output.escape import escaped, escaped_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str | bytes]


class Metric(NamedTuple):
    """A metric: its name without the prefix `rwq_`, and the labels and value of each sample."""

    # The name of a counter ends in `_total`. A value of None is unknown.
    name: str
    help: str
    samples: Sequence[tuple[Labels, float | None]]
    kind: str = "gauge"


def exposition(metrics: Iterable[Metric]) -> str:
    """Format metrics as lines; a metric without any known value is left out."""
    return "".join(map(_lines, metrics))


def _lines(metric: Metric) -> str:
    name = f"rwq_{metric.name}"
    samples = [
        f"{name}{_label_text(labels)} {value if isinstance(value, int) else f'{value:.10g}'}\n"
        for labels, value in metric.samples
        if value is not None
    ]
    head = f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    return head + "".join(samples) if samples else ""


def _label_text(labels: Labels) -> str:
    pairs = []
    for name, value in labels.items():
        # Doubled, so that what is escaped differs from bytes that look like it.
        text = (
            escaped_text(value)
            if isinstance(value, str)
            else escaped(value.replace(b"\\", b"\\\\"))
        )
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        pairs.append(f'{name}="{text}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""
