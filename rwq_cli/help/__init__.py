"""What rwq tells about itself besides the help of its commands: an overview, topics, recipes.

A `Page` is written once, and shown on the screen (`screen.py`), on the pages in `docs` and as a
man page (`roff.py`).
"""
