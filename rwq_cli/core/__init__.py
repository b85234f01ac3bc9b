"""The queue library, which can be used without the command line.

`from rwq_cli.core import Server, WorkQueue, connect`

It imports only the standard library and redis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rwq_cli.core.acting import LeasedItem
    from rwq_cli.core.errors import InvalidArgument, LeaseLost, RwqError, ServerError
    from rwq_cli.core.inspect.queues import queue_names
    from rwq_cli.core.inspect.results import Result, ResultStatus
    from rwq_cli.core.inspect.selection import Selection, Source
    from rwq_cli.core.items.add import Due, NewItem
    from rwq_cli.core.items.results import ResultLookup, WaitCondition, WaitResult
    from rwq_cli.core.model import (
        Counts,
        Item,
        Lease,
        Outcome,
        OutcomeBatch,
        Outcomes,
        State,
        Status,
    )
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.core.repair.clean import CleanAction, Repair
    from rwq_cli.core.repair.doctor import Diagnosis
    from rwq_cli.core.repair.findings import Code, Finding, Severity
    from rwq_cli.core.server.address import Server, connect
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.core.work.control import (
        Contact,
        EndReason,
        Failed,
        Lost,
        Outage,
        Started,
        StopToken,
        WorkEvent,
        WorkSummary,
    )
    from rwq_cli.core.work.job import Ended, Job, Loss
    from rwq_cli.core.work.loop import Handler
    from rwq_cli.core.work.policy import (
        Done,
        Failure,
        Fate,
        GiveUp,
        JobEnd,
        OnFail,
        PutBack,
        RetryPolicy,
        Step,
    )

__all__ = [
    "CleanAction",
    "Code",
    "Connection",
    "Contact",
    "Counts",
    "Diagnosis",
    "Done",
    "Due",
    "EndReason",
    "Ended",
    "Failed",
    "Failure",
    "Fate",
    "Finding",
    "GiveUp",
    "Handler",
    "InvalidArgument",
    "Item",
    "Job",
    "JobEnd",
    "Lease",
    "LeaseLost",
    "LeasedItem",
    "Loss",
    "Lost",
    "NewItem",
    "OnFail",
    "Outage",
    "Outcome",
    "OutcomeBatch",
    "Outcomes",
    "PutBack",
    "Repair",
    "Result",
    "ResultLookup",
    "ResultStatus",
    "RetryPolicy",
    "RwqError",
    "Selection",
    "Server",
    "ServerError",
    "Severity",
    "Source",
    "Started",
    "State",
    "Status",
    "Step",
    "StopToken",
    "WaitCondition",
    "WaitResult",
    "WorkEvent",
    "WorkQueue",
    "WorkSummary",
    "connect",
    "queue_names",
]

_HOMES = {
    "errors": "InvalidArgument LeaseLost RwqError ServerError",
    "inspect.queues": "queue_names",
    "inspect.results": "Result ResultStatus",
    "inspect.selection": "Selection Source",
    "items.add": "Due NewItem",
    "items.results": "ResultLookup WaitCondition WaitResult",
    "acting": "LeasedItem",
    "model": "Counts Item Lease Outcome OutcomeBatch Outcomes State Status",
    "queue": "WorkQueue",
    "repair.clean": "CleanAction Repair",
    "repair.doctor": "Diagnosis",
    "repair.findings": "Code Finding Severity",
    "server.address": "Server connect",
    "server.connection": "Connection",
    "work.job": "Ended Job Loss",
    "work.control": "Contact EndReason Failed Lost Outage Started StopToken WorkEvent WorkSummary",
    "work.loop": "Handler",
    "work.policy": "Done Failure Fate GiveUp JobEnd OnFail PutBack RetryPolicy Step",
}


def __getattr__(name: str) -> Any:
    # Loading redis takes most of a command's start-up; errors and `--version` do not need it.
    for home, names in _HOMES.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
