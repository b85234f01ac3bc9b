"""Commands that run until they are stopped: rounds, reconnection, and what supervisors see of them.

It knows no queue: `clean --every` and other long-running commands tell it what to report.
"""
