"""Compares two sides of runs: which metrics got worse, how certain that is, and which files, threads and stacks contribute."""
