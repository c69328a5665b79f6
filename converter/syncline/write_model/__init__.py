"""What a write should cost, by the rules of the page cache: the model CAWL, and what it needs to know of a machine."""
