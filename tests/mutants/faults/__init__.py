"""One-line faults, each of which some test must find.

A fault is a piece of text in a file, and what stands there instead. They are written against what
is promised, not against how it is done: when the code changes, they are carried over, and break the
same thing in the new code. One that does not apply any more is an error.

The comments name what is promised: a guarantee of the protocol, a key, or a rule of the command
line.
"""

from tests.mutants.faults.commands import COMMANDS
from tests.mutants.faults.fault import Fault
from tests.mutants.faults.fresh import FRESH
from tests.mutants.faults.protocol import PROTOCOL

__all__ = ["FAULTS", "Fault"]

FAULTS = (*PROTOCOL, *COMMANDS, *FRESH)
