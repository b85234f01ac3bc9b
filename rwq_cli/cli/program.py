"""One run of rwq: parse, do, render; and every error becomes one line and an exit code."""

import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import typer

from rwq_cli.cli.app import build_root
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, RwqError, ServerError
from rwq_cli.environment import Environment
from rwq_cli.exit_codes import Code, ExitStatus, MonitoringStatus

# -o, alone or behind flags that take no value: -o json, -ojson, -vo json.
_SHORT_OUTPUT = re.compile(r"-[v0]*o(.*)", re.DOTALL)


def run(arguments: Sequence[str], environment: Environment) -> Code:
    """Run one command line.

    Args:
        arguments: The words after `rwq`.
        environment: Streams and variables.

    Returns:
        The exit code.
    """
    settings = Settings(environment)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        status = _run(arguments, settings)
        with suppress(BrokenPipeError):
            environment.stdout.flush()
        return status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        return ExitStatus.OK
    except Exception as error:
        settings.end_progress()
        if settings.debug or "--debug" in arguments:
            import traceback

            environment.note(traceback.format_exc().rstrip())
        failure = _failure(error)
        if settings.monitors and not wants_json(arguments):
            return _tell_monitor(failure, environment)
        _tell(failure, arguments, environment)
        return MonitoringStatus.UNKNOWN if settings.monitors else failure.status
    finally:
        settings.end_progress()


def _run(arguments: Sequence[str], settings: Settings) -> Code:
    root = build_root()
    try:
        with root.make_context("rwq", list(arguments), obj=settings) as context:
            report = root.invoke(context)
    except typer.Exit as done:
        return ExitStatus(done.exit_code)
    from rwq_cli.output import render

    # What was loaded stays: the collector need not look at it again.
    gc.freeze()
    gc.enable()
    return render(report, settings)


@dataclass(frozen=True)
class _Failure:
    """An error as it is told.

    Attributes:
        message: What happened; may hold anything that was typed or answered.
        code: A stable word for it.
        hint: What to do about it; None where there is nothing to advise.
        status: The exit code.
        help: The help, where that is all the answer.
        fields: Further fields of the JSON object.
    """

    message: str
    code: str
    hint: str | None
    status: ExitStatus
    help: str | None = None
    fields: dict[str, object] = field(default_factory=dict)

    def line(self) -> str:
        """Message and hint, safe to show."""
        return _safe(self.message) + (f"; {_safe(self.hint)}" if self.hint else "")


def _failure(error: Exception) -> _Failure:
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
        where = context.command_path if context else "rwq"
        said = None
        if type(error).__name__ == "NoArgsIsHelpError":
            said = context.get_help() if context else error.format_message()
        return _Failure(message, "usage", f"see {where} --help", ExitStatus.USAGE, said)
    if isinstance(error, RwqError):
        if isinstance(error, ServerError):
            return _server_failure(error)
        status = ExitStatus.USAGE if isinstance(error, InvalidArgument) else ExitStatus.NO
        return _Failure(error.message, error.code, error.hint, status)
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        return _Failure(f"cannot write the output: {reason}", "output", None, ExitStatus.NO)
    reason = f"{type(error).__name__}: {error}"
    return _Failure(f"this is a bug in rwq: {reason}", "bug", "--debug shows more", ExitStatus.NO)


def _server_failure(error: ServerError) -> _Failure:
    hint, fields = error.hint, {}
    if error.acknowledged is not None:
        after = error.acknowledged_after
        fields = {"acknowledged": error.acknowledged, "acknowledged_after": after}
        done = f"{error.acknowledged:,} were acknowledged and are done"
        if after:
            ranges = [f"{first + 1:,} to {first + count:,}" for first, count in after]
            done = f"the first {done}, and so are {' and '.join(ranges)}, but nothing else"
        if error.in_doubt:
            done += ", those sent after them all or not at all"
        if error.acknowledged or after or error.in_doubt:
            hint = f"{done}; {hint}" if hint else done
    return _Failure(error.message, error.code, hint, ExitStatus.SERVER, fields=fields)


def _tell(failure: _Failure, arguments: Sequence[str], environment: Environment) -> None:
    if failure.help is not None:
        environment.note(failure.help)
    elif wants_json(arguments):
        from rwq_cli.output.encode import to_json

        hint = _safe(failure.hint) if failure.hint else None
        record = {
            "error": _safe(failure.message),
            "code": failure.code,
            "hint": hint,
            **failure.fields,
        }
        environment.note(to_json(record).decode())
    else:
        environment.note(f"rwq: error: {failure.line()}")


def _tell_monitor(failure: _Failure, environment: Environment) -> MonitoringStatus:
    """On stdout, where a monitor reads."""
    from rwq_cli.views.monitoring import unknown_line

    with suppress(OSError):
        environment.stdout.write(unknown_line(failure.line()).encode())
        environment.stdout.flush()
    return MonitoringStatus.UNKNOWN


def _safe(text: str) -> str:
    from rwq_cli.output.escape import escaped

    return escaped(text.encode("utf-8", "surrogateescape"))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are wanted as JSON, read from the words alone: parsing may be what failed."""
    wanted = False
    for index, word in enumerate(arguments):
        if word == "--":
            break
        value = None
        if word == "--output":
            value = arguments[index + 1] if index + 1 < len(arguments) else None
        elif word.startswith("--output="):
            value = word.partition("=")[2]
        elif match := _SHORT_OUTPUT.fullmatch(word):
            value = match[1] or (arguments[index + 1] if index + 1 < len(arguments) else None)
        if value is not None:
            wanted = value in ("json", "jsonl")
    return wanted


def main() -> None:
    """The `rwq` command.

    It ends by `os._exit`: taking down the interpreter module by module would cost a fifth of a
    short command's time, and everything that must end has ended.
    """
    environment = Environment.of_process()
    status = run(sys.argv[1:], environment)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(int(status))
