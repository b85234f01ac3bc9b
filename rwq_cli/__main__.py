"""`python -m rwq_cli`, and the `rwq` command."""

import signal

# Before any other import: until work begins, Ctrl-C ends the process at once, without a traceback,
# unless it is ignored, as in a background job. See `rwq_cli.cli.interrupts`.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import gc
import sys

# Imports create many objects and no garbage. The program enables the collector when they are done.
gc.disable()


def main() -> None:
    """Run rwq."""
    try:
        from rwq_cli.cli.program import main as program_main

        program_main()
    except KeyboardInterrupt:
        from rwq_cli.exit_codes import ExitStatus

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(ExitStatus.INTERRUPTED)


if __name__ == "__main__":
    main()
