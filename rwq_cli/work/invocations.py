"""What to run for an item: the command with its arguments, its environment and its input."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from tempfile import mkstemp
from typing import Any

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.work.job import Job
from rwq_cli.environment import os_reason
from rwq_cli.output.field import bytes_fields, to_json
from rwq_cli.work.programs import BadArguments, CannotRun, Invocation, find_program


class Input(StrEnum):
    """How a command gets the data of its item: the values of `--input`."""

    STDIN = "stdin"
    LINE = "line"
    FILE = "file"
    ARG = "arg"
    NONE = "none"


# The input that replaces each placeholder; `{id}` is always replaced.
_NEEDS = {b"{file}": Input.FILE, b"{data}": Input.ARG}
_PLACEHOLDER = re.compile(rb"\{(?:id|file|data)\}")
# Its value identifies the processes of a command, and its beginning those of a worker.
_MARK = b"RWQ_WORKER"
# A worker may run in a command of another one.
_OWN = frozenset(
    (
        *(_MARK, b"RWQ_QUEUE", b"RWQ_SESSION", b"RWQ_SLOT", b"RWQ_ID", b"RWQ_ID_B64"),
        *(b"RWQ_ATTEMPT", b"RWQ_RETURNS", b"RWQ_LAST"),
    )
)


@dataclass
class Invocations:
    """Makes the invocation for an item, or for a batch of them, which are JSON lines on stdin.

    The first of the `words` is taken literally, and `program` is its path; or the data names a task
    of `task_dir`. `inherited` is rwq's environment with the variables that name the server; None
    unsets one. `holder_prefix` precedes a session's name in the holder of a lease.
    """

    words: Sequence[bytes]
    program: bytes | None
    task_dir: bytes | None
    input: Input | None
    is_batch: bool
    inherited: Mapping[bytes, bytes | None]
    holder_prefix: bytes
    lease_s: float
    file_directory: str

    def __post_init__(self) -> None:
        self.input = self.input or Input.STDIN
        # An environment entry of every command begins with this, and of no other process.
        self.mark = b"%b=%b." % (_MARK, os.urandom(8).hex().encode())
        self._numbers = count(1)
        variables = {**self.inherited, b"RWQ_LEASE_SECONDS": b"%g" % self.lease_s}
        self._inherited = tuple(
            b"%b=%b" % (name, value)
            for name, value in variables.items()
            if value is not None and name not in _OWN
        )

    @property
    def ends_without_newline(self) -> bool:
        """Whether a command gets the data as they are, which seldom end with a newline."""
        return self.input is Input.STDIN and not self.is_batch

    def of(self, jobs: Sequence[Job], *, dry_run: bool = False) -> Invocation:
        """Make the invocation for these items of one queue; in a dry run, without its own file."""
        first, variables = jobs[0], self._variables(jobs[0])
        stdin = first.data if self.input in (Input.STDIN, Input.LINE) else None
        if self.input is Input.LINE:
            stdin = first.data + b"\n"
        if self.task_dir is not None:
            words = _read_task(self.task_dir, first.data)
            return Invocation(words[0], words, variables, self._inherited, stdin)
        assert self.program is not None
        if self.is_batch:
            stdin = b"".join(map(_line, jobs))
        file = None
        if self.input is Input.FILE and not dry_run:
            file = self._write_file(first.data)
        words = self._arguments(first, file)
        return Invocation(self.program, words, variables, self._inherited, stdin, file)

    def check_program(self) -> None:
        """Raise `CannotRun` if the command can be run for no item any more."""
        if self.program is not None:
            path = self.inherited.get(b"PATH") or os.fsencode(os.defpath)
            find_program(self.program, os.fsdecode(path))

    def _write_file(self, data: bytes) -> bytes:
        path = ""
        try:
            fd, path = mkstemp(prefix="rwq-work-", dir=self.file_directory)
            with open(fd, "wb") as file:
                file.write(data)
        except OSError as error:
            if path:
                os.unlink(path)
            raise CannotRun(
                f"cannot write the data of an item into {self.file_directory}: {os_reason(error)}",
                "TMPDIR names the directory of temporary files",
            )
        return os.fsencode(path)

    def _arguments(self, job: Job, file: bytes | None) -> list[bytes]:
        values = {b"{id}": job.item_id}
        if self.input is Input.FILE:
            values[b"{file}"] = file or os.fsencode(os.path.join(self.file_directory, "rwq-work"))
        elif self.input is Input.ARG:
            values[b"{data}"] = job.data

        def value(match: re.Match[bytes]) -> bytes:
            return values.get(match[0], match[0])

        # In one pass: the data may hold a placeholder.
        return [self.words[0], *(_PLACEHOLDER.sub(value, word) for word in self.words[1:])]

    def _variables(self, job: Job) -> list[bytes]:
        """Return the variables for an item, or for the batch that it begins, which name no item."""
        variables = [
            b"%b%d" % (self.mark, next(self._numbers)),
            b"RWQ_QUEUE=" + job.queue,
            b"RWQ_SESSION=" + job.holder.removeprefix(self.holder_prefix),
            b"RWQ_SLOT=%d" % job.slot,
        ]
        if self.is_batch:
            return variables
        if b"\0" not in job.item_id:
            variables.append(b"RWQ_ID=" + job.item_id)
        if b"\0" in job.item_id or bytes_fields("id", job.item_id)["id"] is None:
            variables.append(b"RWQ_ID_B64=" + b64encode(job.item_id))
        variables.append(b"RWQ_ATTEMPT=%d" % job.attempt)
        variables.append(b"RWQ_RETURNS=%d" % job.returns)
        variables.append(b"RWQ_LAST=%d" % job.is_last)
        return variables


def check_command(
    words: Sequence[bytes], input: Input | None, *, is_batch: bool, keeps_result: bool
) -> None:
    if not words:
        raise InvalidArgument(
            "no command given", "it follows --, as in: rwq work -q jobs -- ./work"
        )
    if is_batch and (keeps_result or input is not None):
        wrong = "--result" if keeps_result else "--input"
        raise InvalidArgument(
            f"--batch and {wrong} cannot be used together", "a batch has one stdin and one stdout"
        )
    used = {name for word in words[1:] for name in _PLACEHOLDER.findall(word)}
    if is_batch and used:
        raise InvalidArgument(
            f"{min(used).decode()} cannot be used with --batch", "the items are JSON lines on stdin"
        )
    for name, needed in _NEEDS.items():
        text = name.decode()
        if input is needed and name not in used:
            raise InvalidArgument(
                f"--input {needed} needs {text} among the arguments of the command",
                f"put {text} where the {needed} belongs",
            )
        if name in used and input is None:
            raise InvalidArgument(
                f"{text} needs --input {needed}", f"to pass {text} literally, give --input stdin"
            )


def _line(job: Job) -> bytes:
    record = {
        **bytes_fields("queue", job.queue),
        **bytes_fields("id", job.item_id),
        "attempt": job.attempt,
        "returns": job.returns,
        "last": job.is_last,
        **bytes_fields("data", job.data),
    }
    return to_json(record) + b"\n"


def _read_task(directory: bytes, data: bytes) -> list[bytes]:
    """Parse `["NAME", [ARGS...]]` or `{"task": "NAME", ...}` into a program path and arguments."""
    # Other work does not need it.
    from msgspec import Raw, json as raw_json

    try:
        # Numbers stay as they are: a float would lose digits.
        value = json.loads(data, parse_float=Raw, parse_int=Raw, parse_constant=Raw)
    except (ValueError, RecursionError):
        raise BadArguments("no task: the data is not JSON") from None
    match value:
        case {"task": str(name)} | [str(name)]:
            arguments: list[Any] = []
        case [str(name), list(arguments)]:
            pass
        case _:
            raise BadArguments('no task: neither ["NAME", [ARGS...]] nor {"task": "NAME", ...}')
    program = os.path.join(directory, os.fsencode(name.encode("utf-8", "replace")))
    # A path would leave the directory, and NUL ends a name.
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise BadArguments(f"unknown task {name!r}: not the name of a program")
    if not os.path.isfile(program):
        raise BadArguments(f"unknown task {name!r}: no such program in {os.fsdecode(directory)}")
    if not os.access(program, os.X_OK):
        raise BadArguments(f"unknown task {name!r}: its program is not executable")

    def word(argument: Any) -> bytes:
        # A string as it is, any other value as JSON.
        is_text = isinstance(argument, str)
        return argument.encode("utf-8", "surrogatepass") if is_text else raw_json.encode(argument)

    try:
        return [program, *map(word, arguments)]
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"no task: an argument cannot be written as JSON: {error}") from None
