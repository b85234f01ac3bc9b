"""One module per command, which parses, calls the core and returns a report.

`removing`, `replacing` and `restoring` are not commands; several commands share them.
"""
