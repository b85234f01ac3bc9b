"""The command line itself: the tree of commands, shared options, settings and errors.

`settings.py` reads the connection settings (options, then variables, then defaults), `connect.py`
opens the server and queues that they name, and `program.py` turns each error into a line and an
exit code.
"""
