"""Tests of `rwq top`."""
