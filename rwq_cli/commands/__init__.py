"""One module per command, which parses, calls the core and returns a report.

`cleaning_process`, `removing`, `replacing` and `restoring` are helpers shared by commands.
"""
