"""The tests of rwq."""

import sys

# Half of the time in which tests are collected is the rewriting of their assertions. It is written
# down, as the bytecode of rwq is, so that one process does it for all: see tests/conftest.py.
sys.dont_write_bytecode = False
