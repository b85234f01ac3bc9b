"""One run of rwq: parse, do, render; and every error becomes one line and an exit code."""

import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

import typer

from rwq_cli.command_line.tree import build_root
from rwq_cli.core.errors import (
    ConnectionLost,
    InvalidArgument,
    RwqError,
    ServerError,
)
from rwq_cli.environment import Environment
from rwq_cli.exits import ExitStatus
from rwq_cli.settings import Settings

# -o, alone or behind flags that take no value: -o json, -ojson, -vo json.
_SHORT_OUTPUT = re.compile(r"-[v0]*o(.*)", re.DOTALL)


def run(arguments: Sequence[str], environment: Environment) -> ExitStatus:
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
        return _tell(error, arguments, environment)
    finally:
        settings.end_progress()


def _run(arguments: Sequence[str], settings: Settings) -> ExitStatus:
    root = build_root()
    try:
        with root.make_context("rwq", list(arguments), obj=settings) as context:
            report = root.invoke(context)
    except typer.Exit as done:
        return ExitStatus(done.exit_code)
    from rwq_cli.render import render

    # What was loaded stays: the collector need not look at it again.
    gc.freeze()
    gc.enable()
    return render(report, settings)


def _tell(error: Exception, arguments: Sequence[str], environment: Environment) -> ExitStatus:
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            environment.note(context.get_help() if context else error.format_message())
            return ExitStatus.USAGE
        where = context.command_path if context else "rwq"
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
        _say(arguments, environment, message, "usage", f"see {where} --help")
        return ExitStatus.USAGE
    if isinstance(error, RwqError):
        hint = error.hint
        acknowledged = getattr(error, "acknowledged", None)
        lost = isinstance(error, ConnectionLost)
        if acknowledged is not None and (acknowledged or lost):
            done = f"{acknowledged:,} were acknowledged and are done"
            if lost:
                done += ", those sent after them all or not at all"
            hint = f"{done}; {hint}" if hint else done
        _say(arguments, environment, error.message, error.code, hint)
        if isinstance(error, InvalidArgument):
            return ExitStatus.USAGE
        return ExitStatus.SERVER if isinstance(error, ServerError) else ExitStatus.NO
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        _say(arguments, environment, f"cannot write the output: {reason.lower()}", "output", None)
        return ExitStatus.NO
    reason = f"{type(error).__name__}: {error}"
    _say(arguments, environment, f"this is a bug in rwq: {reason}", "bug", "--debug shows more")
    return ExitStatus.NO


def _say(
    arguments: Sequence[str], environment: Environment, message: str, code: str, hint: str | None
) -> None:
    from rwq_cli.render.escape import escaped

    def safe(text: str) -> str:
        return escaped(text.encode("utf-8", "surrogateescape"))

    if wants_json(arguments):
        from rwq_cli.render.encode import to_json

        record = {"error": safe(message), "code": code, "hint": safe(hint) if hint else None}
        environment.note(to_json(record).decode())
        return
    environment.note(f"rwq: error: {safe(message)}" + (f"; {safe(hint)}" if hint else ""))


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
