"""One module per command, which parses, calls the core and writes what became of it."""
