"""Serves traces to the Perfetto UI, and the UI itself without a network."""
