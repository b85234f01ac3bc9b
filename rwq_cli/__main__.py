"""`python -m rwq_cli`, and the `rwq` command."""

# The module in C: `signal` itself imports others, which takes some 10 ms.
import _signal  # type: ignore[import-not-found]

# Before any other import: until work begins, Ctrl-C ends the process at once, without a traceback,
# unless it is ignored, as in a background job.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

from rwq_cli import __version__

# Whoever started this may ignore it, and then the exit codes of its children are lost.
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
# For PID 1, as in a container, the kernel ignores signals without a handler.
if os.getpid() == 1:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))


class _Deferred:
    """Finds packages that redis-py imports and rwq does not use, and runs them on first access."""

    # `importlib.metadata` takes 7 ms, and so does `redis.asyncio`, all commands a second time.
    # `importlib.util.LazyLoader` would run a package when a module inside it is imported.
    names = frozenset({"importlib.metadata", "redis.asyncio"})

    def __init__(self, loader: SourceFileLoader) -> None:
        self._loader = loader

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in cls.names else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = cls(spec.loader)  # type: ignore[assignment]
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        def read(name: str) -> object:
            del module.__getattr__
            self._loader.exec_module(module)
            return getattr(module, name)

        module.__getattr__ = read  # type: ignore[method-assign]


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        # Importing the parser takes longer than all the rest. It is the fallback if this fails.
        try:
            os.write(1, f"rwq {__version__}\n".encode())
            os._exit(0)
        except OSError:
            pass
    # Imports create many objects and no garbage. The program enables the collector when they are
    # done.
    gc.disable()
    sys.meta_path.insert(0, _Deferred)
    try:
        from rwq_cli.cli.interrupts import end_at_once

        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, end_at_once)
        if instruction := os.environ.get("_RWQ_COMPLETE"):
            from rwq_cli.completion import complete

            # Nothing but the completions may be printed.
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
        # Before a command runs: an import ran out of memory or file descriptors.
        if "--debug" in sys.argv:
            raise
        from rwq_cli.hidden_module import hidden_module

        reason = f"{hidden_module() or 'cannot start'}: {error!a}"
        os.write(2, f"rwq: error: {reason}\n".encode("ascii", "backslashreplace"))
        # Not 1, which is an answer; and without the shutdown of the interpreter.
        os._exit(70)


if __name__ == "__main__":
    main()
