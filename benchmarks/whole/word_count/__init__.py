"""The most frequent words of a text, written for bsplib and its peers."""
