"""Two sides of runs compared: what got worse, how surely, and where."""
