"""The command line itself: the tree of commands, shared options, settings and errors."""
