"""Measures rwq against the tools beside it, in one run on one machine: `python -m benchmarks`."""
