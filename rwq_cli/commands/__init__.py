"""One module per command, which parses, calls the core and returns a report.

`mending`, `removing` and `restoring` are not commands; several commands share them.
"""
