"""The program that restores the terminal when `rwq top` was killed.

It is run as a file, without the rest of rwq, and must be quick: the user's shell has the terminal
again a moment later. Most shells then reset the modes of the terminal; zsh keeps those that it
finds, which are Textual's if this program was slower.
"""

import marshal
import os
import signal
import sys
import termios
from contextlib import suppress

# Ends a truncated escape sequence and synchronized output; then resets bracketed paste, line wrap,
# resize reports, keyboard protocol, screen, cursor, focus and style.
RESET = (
    b"\x18\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[0m"
)
# The lines that it reads from stdin: whether Textual has the terminal.
DRAWN, LEFT = b"drawn", b"left"

_TERMINAL = 2
_OF_LINES = termios.ICANON | termios.ECHO | termios.ISIG


def main() -> None:
    """Wait for the end of stdin. The argument is the earlier modes, as hexadecimal digits."""
    # With signals blocked, no key and no hangup ends or stops it, and it may change a terminal on
    # which another process group is in the foreground.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    modes = marshal.loads(bytes.fromhex(sys.argv[1]))
    told = b""
    while read := os.read(0, 1024):
        told = read
    if told.endswith(DRAWN + b"\n"):
        with suppress(termios.error):
            now = termios.tcgetattr(_TERMINAL)
            # Only Textual's modes: those in which a shell edits a line are different.
            if not now[0] & termios.ICRNL and not now[3] & _OF_LINES:
                termios.tcsetattr(_TERMINAL, termios.TCSANOW, modes)
        with suppress(OSError):
            os.write(_TERMINAL, RESET)


if __name__ == "__main__":
    main()
