"""PageRank of a random graph, written for bsplib and its peers."""
