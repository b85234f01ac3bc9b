"""The names that the library offers; `rwq_cli.core` looks them up here."""

from rwq_cli.core.acting import LeasedItem as LeasedItem
from rwq_cli.core.errors import (
    InvalidArgument as InvalidArgument,
    LeaseLost as LeaseLost,
    RwqError as RwqError,
    ServerError as ServerError,
)
from rwq_cli.core.inspect.queues import queue_names as queue_names
from rwq_cli.core.inspect.results import Result as Result, ResultStatus as ResultStatus
from rwq_cli.core.inspect.selection import Selection as Selection, Source as Source
from rwq_cli.core.items.add import Due as Due, NewItem as NewItem
from rwq_cli.core.items.results import ResultLookup as ResultLookup
from rwq_cli.core.model import (
    Counts as Counts,
    Item as Item,
    Lease as Lease,
    Outcome as Outcome,
    OutcomeBatch as OutcomeBatch,
    Outcomes as Outcomes,
    State as State,
    Status as Status,
)
from rwq_cli.core.queue import WorkQueue as WorkQueue
from rwq_cli.core.repair.clean import CleanAction as CleanAction, Repair as Repair
from rwq_cli.core.repair.doctor import Diagnosis as Diagnosis
from rwq_cli.core.repair.findings import Code as Code, Finding as Finding, Severity as Severity
from rwq_cli.core.server.address import Server as Server, connect as connect
from rwq_cli.core.server.connection import Connection as Connection
from rwq_cli.core.work.control import (
    Contact as Contact,
    EndReason as EndReason,
    Failed as Failed,
    Lost as Lost,
    Outage as Outage,
    Started as Started,
    StopToken as StopToken,
    WorkEvent as WorkEvent,
    WorkSummary as WorkSummary,
)
from rwq_cli.core.work.job import Ended as Ended, Handler as Handler, Job as Job, Loss as Loss
from rwq_cli.core.work.policy import (
    Done as Done,
    Failure as Failure,
    Fate as Fate,
    GiveUp as GiveUp,
    JobEnd as JobEnd,
    OnFail as OnFail,
    PutBack as PutBack,
    RetryPolicy as RetryPolicy,
    Step as Step,
)
