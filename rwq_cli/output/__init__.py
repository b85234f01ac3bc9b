"""Output: reports as tables, plain lines, JSON or CSV, and progress."""
