"""Recording: the routes by which events leave the kernel, and the run directory. Start at `session`."""
