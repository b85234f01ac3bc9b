"""Input parsing: arguments, stdin and files."""
