"""Parses what users type, pipe in or give in files."""
