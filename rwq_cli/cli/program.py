"""Runs one command line: parse, run, render; turns each error into a message and an exit code."""

import errno
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

from rwq_cli.cli import interrupts
from rwq_cli.cli.settings import Call
from rwq_cli.core.errors import RwqError, ServerError
from rwq_cli.environment import Environment, os_reason
from rwq_cli.exit_codes import (
    ExitCode,
    ExitStatus,
    Fault,
    MonitoringStatus,
    OutputError,
    UsageError,
    exit_status_of,
)
from rwq_cli.output.escape import escaped_text

_OUT_OF_RESOURCES = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
# The values of -o in arguments that are joined by NUL.
_OUTPUT = re.compile(r"\0(?:-[vQ0]*o\0?|--output[=\0])(\w+)")


def run(arguments: Sequence[str], environment: Environment) -> ExitCode:
    call = Call(environment, arguments)
    try:
        status = _run(call)
        with suppress(BrokenPipeError):
            environment.stdout.flush()
        return status
    except SystemExit:
        # See `raising_on_terminate`.
        return ExitStatus.TERMINATED
    except KeyboardInterrupt:
        if done := call.describe_unfinished():
            environment.error(f"interrupted: {done}")
        return ExitStatus.OK if interrupts.was_terminated else ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has closed it, as in `rwq ls | head`.
        return ExitStatus.OK
    except Exception as error:
        return _report(error, call)


def _run(call: Call) -> ExitCode:
    if not call.arguments:
        # Typer would load every command for its help.
        from rwq_cli.topics import overview

        usage = UsageError("no command", "see rwq --help")
        usage.help = overview(call.environment.stderr_width).rstrip()
        raise usage
    import typer

    from rwq_cli.cli.app import build_root
    from rwq_cli.cli.command import help_width

    root = build_root()
    try:
        width = help_width(call.environment)
        arguments = list(call.arguments)
        with root.make_context("rwq", arguments, obj=call, terminal_width=width) as context:
            status: ExitCode = root.invoke(context)
            return status
    except typer.Exit as done:
        return ExitStatus(done.exit_code)


def _report(error: Exception, call: Call) -> ExitCode:
    environment = call.environment
    own_words = _find_own_options(call)
    if own_words.get("debug"):
        import traceback

        environment.error(traceback.format_exc().rstrip())
    failure = _convert_error(error)
    hint = escaped_text(failure.hint) if failure.hint else None
    message = escaped_text(failure.message)
    line = f"{message}; {hint}" if hint else message
    help = failure.help if isinstance(failure, UsageError) else None
    output = own_words.get("output") or environment.variables.get("RWQ_OUTPUT")
    is_json = output in ("json", "jsonl")
    if call.manual.monitors and not is_json:
        from rwq_cli.views.monitoring import unknown_line

        # A monitor reads stdout.
        try:
            environment.stdout.write(unknown_line(line).encode())
            environment.stdout.flush()
        except OSError:
            environment.error(f"rwq: error: {line}")
    elif help is not None and not (call.arguments and is_json):
        # `rwq` alone always shows how to begin.
        environment.error(help)
    elif is_json:
        from rwq_cli.output.field import to_json

        record: dict[str, object] = {"error": message, "code": failure.code, "hint": hint}
        if isinstance(failure, ServerError) and failure.acknowledged is not None:
            record["acknowledged"] = failure.acknowledged
            record["acknowledged_after"] = failure.acknowledged_after
            record["in_doubt"] = failure.doubtful
        environment.error(to_json(record).decode())
    elif failure.code == "declined":
        # The user's own no is no error.
        environment.error(f"rwq: {line}")
    else:
        environment.error(f"rwq: error: {line}")
    return MonitoringStatus.UNKNOWN if call.manual.monitors else exit_status_of(failure)


def _find_own_options(call: Call) -> dict[str, object]:
    """Return the options of rwq itself, not those of a command that it runs."""
    if call.words is not None:
        return {**call.common_options, **call.words}
    # Parsing failed before it reached them.
    words = list(call.arguments)
    words = words[: words.index("--")] if "--" in words else words
    formats = _OUTPUT.findall("\0".join(("", *words)))
    return {
        **call.common_options,
        "output": formats[-1] if formats else None,
        "debug": "--debug" in words,
    }


def _convert_error(error: Exception) -> RwqError:
    if isinstance(error, RwqError):
        if isinstance(error, ServerError) and (done := _describe_acknowledged(error)):
            error.hint = f"{done}; {error.hint}" if error.hint else done
        return error
    import typer

    from rwq_cli.hidden_module import hidden_module

    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        # A list of choices contains newlines.
        message = " ".join(error.format_message().split()).rstrip(".")
        where = context.command_path if context else "rwq"
        usage = UsageError(message[:1].lower() + message[1:], f"see {where} --help")
        if type(error).__name__ == "NoArgsIsHelpError":
            usage.help = context.get_help() if context else error.format_message()
        return usage
    is_out = isinstance(error, MemoryError) or "start new thread" in str(error)
    if is_out or getattr(error, "errno", None) in _OUT_OF_RESOURCES:
        return Fault(f"this machine is out of resources: {str(error) or 'no memory left'}")
    if isinstance(error, OSError):
        reason = os_reason(error)
        if isinstance(error.filename, str | bytes):
            # stdout has no name.
            return RwqError(f"cannot use {os.fsdecode(error.filename)}: {reason}")
        return OutputError(f"cannot write the output: {reason}")
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, ImportError | AttributeError) and (hidden := hidden_module()):
        return Fault(
            f"{hidden}: {reason}", "rename that file, or take its directory off PYTHONPATH"
        )
    return Fault(f"this is a bug in rwq: {reason}", "--debug shows the traceback")


def _describe_acknowledged(error: ServerError) -> str | None:
    """Describe the part of a batch that was applied; None for nothing."""
    after = error.acknowledged_after
    if error.acknowledged is None or not (error.acknowledged or after or error.in_doubt):
        return None
    ranges = [
        f"{first + 1:,} to {first + count:,}" if count > 1 else f"{first + 1:,}"
        for first, count in ((0, error.acknowledged), *after)
        if count
    ]
    done = f"acknowledged: {' and '.join(ranges) or 'none'}"
    if error.in_doubt:
        # Up to three calls are outstanding.
        doubtful = f"{error.doubtful:,} in doubt: " if error.doubtful else ""
        done += f"; {doubtful}each batch without a reply was applied in full or not at all"
    return done


def main() -> None:
    # It ends with `os._exit`: shutting down the interpreter takes a fifth of a short command's
    # time, and nothing is left to close.
    try:
        status = run(sys.argv[1:], Environment.of_process())
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first one is handled.
        status = ExitStatus.INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(int(status))
