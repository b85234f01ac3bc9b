"""The ways in which IDs are found in lists, by how long those are and how many IDs there are."""

import pytest

from rwq_cli.core.inspect import lookup

WAYS = ("by script", "by name", "by walk")


def force(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have short lists searched in the way of long ones."""
    if way != "by script":
        monkeypatch.setattr(lookup, "SCAN_BUDGET_ENTRIES", -1)
    if way == "by walk":
        monkeypatch.setattr(lookup, "FEW_IDS", -1)
