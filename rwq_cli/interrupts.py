"""What Ctrl-C does, and when.

While modules are loaded it ends the process at once. Python's own handler would raise in the middle
of an import, where the exception can get lost in a callback of the import system, and the command
would go on as if nothing had been said. Once there is work that has to end in order it raises.
"""

import signal


def end_at_once() -> None:
    """Let Ctrl-C end the process; where it is ignored, as in a background job, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_in_order() -> None:
    """Let Ctrl-C raise from now on; what was set otherwise, by whoever calls us, stays so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
