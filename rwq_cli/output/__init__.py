"""Writes reports as tables, plain lines, JSON or CSV, and shows progress."""
