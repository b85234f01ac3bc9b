"""The queue library, which can be used without the command line.

`from rwq_cli.core import Server, WorkQueue, connect`

It imports only the standard library and redis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError
    from rwq_cli.core.inspect.queues import queue_names
    from rwq_cli.core.inspect.selection import Selection, Source
    from rwq_cli.core.items.lease import lease_from
    from rwq_cli.core.model import (
        CleanAction,
        Counts,
        Due,
        Item,
        Lease,
        NewItem,
        Outcome,
        Repair,
        State,
        Status,
    )
    from rwq_cli.core.queue import FOREVER, WorkQueue
    from rwq_cli.core.repair.doctor import Diagnosis
    from rwq_cli.core.repair.findings import Code, Finding, Severity
    from rwq_cli.core.server.address import Server, connect
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.core.server.masking import mask_url
    from rwq_cli.core.state.rules import Facts, state_of
    from rwq_cli.core.work.job import Job
    from rwq_cli.core.work.loop import StopToken, WorkSummary
    from rwq_cli.core.work.policy import Done, Failure, GiveUp, OnFail, PutBack, RetryPolicy
    from rwq_cli.core.work.session import WorkSession

__all__ = [
    "FOREVER",
    "CleanAction",
    "Code",
    "Connection",
    "Counts",
    "Diagnosis",
    "Done",
    "Due",
    "Facts",
    "Failure",
    "Finding",
    "GiveUp",
    "InvalidArgument",
    "Item",
    "Job",
    "Lease",
    "NewItem",
    "OnFail",
    "Outcome",
    "PutBack",
    "Repair",
    "RetryPolicy",
    "RwqError",
    "Selection",
    "Server",
    "ServerError",
    "Severity",
    "Source",
    "State",
    "Status",
    "StopToken",
    "WorkQueue",
    "WorkSession",
    "WorkSummary",
    "connect",
    "lease_from",
    "mask_url",
    "queue_names",
    "state_of",
]

_HOMES = {
    "server.connection": ("Connection",),
    "repair.doctor": ("Diagnosis",),
    "inspect.queues": ("queue_names",),
    "errors": ("InvalidArgument", "RwqError", "ServerError"),
    "repair.findings": ("Code", "Finding", "Severity"),
    "inspect.selection": ("Selection", "Source"),
    "model": (
        *("CleanAction", "Counts", "Due", "Item", "Lease"),
        *("NewItem", "Outcome", "Repair", "State", "Status"),
    ),
    "items.lease": ("lease_from",),
    "queue": ("FOREVER", "WorkQueue"),
    "server.address": ("Server", "connect"),
    "server.masking": ("mask_url",),
    "state.rules": ("Facts", "state_of"),
    "work.job": ("Job",),
    "work.loop": ("StopToken", "WorkSummary"),
    "work.policy": ("Done", "Failure", "GiveUp", "OnFail", "PutBack", "RetryPolicy"),
    "work.session": ("WorkSession",),
}


def __getattr__(name: str) -> Any:
    # Loading redis takes most of a command's start-up; errors and `--version` do not need it.
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
