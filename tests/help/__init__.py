"""Tests of rwq_cli/help."""
