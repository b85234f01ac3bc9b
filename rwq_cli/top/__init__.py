"""`rwq top`: queues, live, on the whole terminal.

`session.py` reads the server in threads of its own; `terminal.py` runs commands of rwq in its
place, and restores the terminal. Only `app.py`, `screens.py` and `widgets.py` import
Textual, and only `commands/top.py` imports them.
"""
