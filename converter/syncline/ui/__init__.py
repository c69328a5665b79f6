"""The Perfetto UI: traces for it, and itself where there is no network."""
