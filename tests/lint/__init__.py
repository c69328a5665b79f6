"""Checks of the sources that no ready-made linter has; tests/lint.sh runs them."""
