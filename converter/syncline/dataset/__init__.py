"""A dataset: the tables of many runs in one folder or object store, with an index of the runs."""
