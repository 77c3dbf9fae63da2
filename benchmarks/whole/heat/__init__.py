"""The heat equation on a tube, written for bsplib and its peers."""
