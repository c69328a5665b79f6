"""Slow, plain second implementations that check the converter, written only from docs/."""
