"""The bpftrace scripts. The folder is a package so that the wheel contains it."""
