"""Recording: routes by which events leave the kernel, and the folder that they end in. `record.session` puts them together."""
