"""Benchmarks: rwq against other tools, or against another version of itself."""
