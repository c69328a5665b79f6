"""Slow and plain checks on the converter, written from docs/ alone."""
