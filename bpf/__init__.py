"""The folder of bpftrace scripts, as a package so that the wheel carries it."""
