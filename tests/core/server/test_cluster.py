"""Requests to several slots of a cluster, one of which has lost its node."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from rwq_cli.core import errors
from rwq_cli.core.server import cluster
from rwq_cli.core.server.cluster import ClusterConnection
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.connection import Page
from rwq_cli.core.server.endpoint import Patience

HEALTHY, LOST = ("LLEN", b"{a}"), ("LLEN", b"{b}")


class Slot:
    """What answers for a slot; that of `LOST` is down, until it is repaired."""

    asked: list[int]
    is_repaired: bool

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def send(self, requests: Sequence[Command], patience: Patience) -> list[Any]:
        while self.slot == LOST_SLOT and not self.is_repaired:
            self.asked.append(self.slot)
            error = errors.Unavailable("slot is down")
            error.refusal = "CLUSTERDOWN"
            if not patience.may_repeat(error, writes=False):
                raise error
        self.asked.append(self.slot)
        return [7] * len(requests)


HEALTHY_SLOT, LOST_SLOT = map(cluster._slot_of, (HEALTHY, LOST))


def test_a_lost_slot_is_waited_for_once_and_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Slot.asked, Slot.is_repaired = [], False
    monkeypatch.setattr(ClusterConnection, "_for_slot", lambda _, slot: Slot(slot))
    monkeypatch.setattr(cluster, "_LOST_PAUSES_S", (0.2, 0.2))
    connection = ClusterConnection([("h", 1)], "the cluster", {"connection_class": object})
    connection.patience_s = 0.4

    def send() -> tuple[list[Any], list[int], float]:
        Slot.asked.clear()
        began_s = time.monotonic()
        lost, healthy = connection.send([LOST, HEALTHY])
        took_s = time.monotonic() - began_s
        return [getattr(lost, "refusal", lost), healthy], [*Slot.asked], took_s

    replies, asked, took_s = send()
    assert replies == ["CLUSTERDOWN", 7]
    assert asked[:2] == [LOST_SLOT, HEALTHY_SLOT]
    assert took_s >= 0.4
    # It is neither asked nor waited for.
    assert [send()[:2] for _ in range(3)] == [(["CLUSTERDOWN", 7], [HEALTHY_SLOT])] * 3
    time.sleep(0.2)
    replies, asked, _ = send()
    assert (replies, asked) == (["CLUSTERDOWN", 7], [LOST_SLOT, HEALTHY_SLOT])
    time.sleep(0.2)
    Slot.is_repaired = True
    assert send()[0] == [7, 7]
    assert not connection._lost


def test_a_scan_waits_once_for_a_lost_node(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        def __init__(self, name: str) -> None:
            self.name = name

        def _pages(self, *_: object) -> Iterator[Page]:
            if self.name == "lost":
                error = errors.Unavailable("node is down")
                error.refusal = "CLUSTERDOWN"
                raise error
            yield ("SCAN", 0), [self.name.encode()]

    shares = {name: (name, {0}) for name in ("first", "second", "lost")}
    monkeypatch.setattr(ClusterConnection, "_shares", lambda _: shares)
    monkeypatch.setattr(ClusterConnection, "_to", lambda _, node: Node(node))
    connection = ClusterConnection([("h", 1)], "the cluster", {"connection_class": object})
    connection.patience_s = 0.4
    began_s, pages = time.monotonic(), connection.scan(("SCAN",))
    assert [next(pages)[1], next(pages)[1]] == [[b"first"], [b"second"]]
    with pytest.raises(errors.Unavailable, match="node is down"):
        # What other nodes answer again does not renew the patience.
        list(islice(pages, 10_000))
    assert time.monotonic() - began_s >= 0.4
