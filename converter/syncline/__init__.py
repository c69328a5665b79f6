"""Syncline: converts logs of fsync-driven writeback to Perfetto traces and reports."""
