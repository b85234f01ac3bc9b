"""One module per command, which parses, calls the core and returns a report.

`cleaning_process`, `removing`, `replacing` and `restoring` are not commands, but parts of some.
"""
