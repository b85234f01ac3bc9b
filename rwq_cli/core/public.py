"""The names that the library offers; `rwq_cli.core` looks them up here."""

# mypy: implicit-reexport
# Several lines for one module, rather than one for each name.
# ruff: noqa: F401, I001
from rwq_cli.core.acting import LeasedItem
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import AuthenticationFailed, Busy, ConnectionLost, DataLost
from rwq_cli.core.errors import InvalidArgument, LeaseLost, Loading, LocalServerError, LockLost
from rwq_cli.core.errors import OutOfMemory, PermissionDenied, ReadOnly, RwqError, ScriptError
from rwq_cli.core.errors import SentinelAuthenticationFailed, ServerError, Unavailable
from rwq_cli.core.errors import Unreachable, WrongNode, WrongType
from rwq_cli.core.inspect.queues import queue_names
from rwq_cli.core.inspect.results import Result, ResultStatus
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.items.add import Due, NewItem
from rwq_cli.core.items.results import ResultLookup
from rwq_cli.core.model import Counts, Item, Lease, Outcome, OutcomeBatch, Outcomes, State, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import CleanAction, Repair
from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.repair.findings import Code, Finding, Severity
from rwq_cli.core.server.address import Server, connect
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.work.control import Contact, EndReason, Failed, Lost, Outage, Started, StopToken
from rwq_cli.core.work.control import WorkEvent, WorkSummary
from rwq_cli.core.work.job import Done, Ended, Failure, Fate, GiveUp, Handler, Job, JobEnd, Loss
from rwq_cli.core.work.job import OnFail, PutBack, RetryPolicy, Step
