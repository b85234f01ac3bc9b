"""One module per command: it parses, makes one call of the core, and returns a report."""
