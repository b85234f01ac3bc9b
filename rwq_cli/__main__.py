"""`python -m rwq_cli`, and the `rwq` command."""

import gc
import signal
import sys

from rwq_cli.cli.interrupts import end_at_once

# Loading modules makes many objects and no garbage; the collector is turned on again before work.
gc.disable()


def main() -> None:
    """Run rwq; Ctrl-C ends it also while it is still being loaded."""
    end_at_once()
    try:
        from rwq_cli.cli.program import main as program_main

        program_main()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(130)


if __name__ == "__main__":
    main()
