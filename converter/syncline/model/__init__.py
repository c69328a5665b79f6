"""Models of the source papers: what another queue depth would do."""
