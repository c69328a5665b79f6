"""Programs that people run: they write files of this repository, or compare conversions. Tests may import them, the package may not."""
