"""One command, `syncline trend`: the history of metrics in the runs of a dataset, and what happened to them."""
