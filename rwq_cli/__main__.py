"""`python -m rwq_cli`, and the `rwq` command."""

import signal

# Before any other import: until work begins, Ctrl-C ends the process at once, without a traceback,
# unless it is ignored, as in a background job.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from rwq_cli.cli.interrupts import end_at_once

if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
    signal.signal(signal.SIGINT, end_at_once)

import os

# The kernel ignores signals without a handler for PID 1, as in a container.
if os.getpid() == 1:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))

import gc
import importlib
import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

# Imports create many objects and no garbage. The program enables the collector when they are done.
gc.disable()


def _import_metadata_lazily() -> None:
    """Import `importlib.metadata` when its first attribute is read."""
    # redis-py imports it to look up its own version, which rwq does not ask for. That takes 7 ms.
    spec = find_spec("importlib.metadata")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Else `from importlib import metadata` would read its first attribute.
    importlib.metadata = module


if "importlib.metadata" not in sys.modules:
    _import_metadata_lazily()


def main() -> None:
    try:
        if instruction := os.environ.get("_RWQ_COMPLETE"):
            from rwq_cli.completion import complete

            # Nothing is said beside what a Tab offers.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            complete(instruction)
        else:
            from rwq_cli.cli.program import main as program_main

            program_main()
    except KeyboardInterrupt:
        from rwq_cli.exit_codes import ExitStatus

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(ExitStatus.INTERRUPTED)
    except Exception as error:
        # Before a command runs: an import found no memory, or no file descriptor.
        if "--debug" in sys.argv:
            raise
        os.write(2, b"rwq: error: cannot start: %s\n" % ascii(error).encode())
        # Not 1, which is an answer; and without what the interpreter does at its end.
        os._exit(70)


if __name__ == "__main__":
    main()
