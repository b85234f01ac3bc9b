"""Runs a command for each item: processes, their pipes and signals, around `core.work`."""
