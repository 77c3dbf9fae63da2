"""Lloyd's k-means, written for bsplib and its peers."""
