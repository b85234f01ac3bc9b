"""`python -m rwq_cli`, and the `rwq` command."""

import gc
import signal
import sys

from rwq_cli.cli.interrupts import end_at_once

# Imports create many objects and no garbage. The program enables the collector when they are done.
gc.disable()


def main() -> None:
    """Run rwq; Ctrl-C also ends it during its imports."""
    end_at_once()
    try:
        from rwq_cli.cli.program import main as program_main

        program_main()
    except KeyboardInterrupt:
        from rwq_cli.exit_codes import ExitStatus

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(ExitStatus.INTERRUPTED)


if __name__ == "__main__":
    main()
