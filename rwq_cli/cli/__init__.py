"""The command line itself: the tree of commands, the options that all share, the help."""
