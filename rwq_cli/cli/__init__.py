"""The command line itself: the tree of commands, shared options, settings and errors.

`target.py` reads which server and queue are meant (options, then variables, then defaults),
`connect.py` opens them, and `program.py` turns each error into a line and an exit code.
"""
