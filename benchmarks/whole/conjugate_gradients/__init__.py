"""Conjugate gradients on a sparse matrix, written for bsplib and its peers."""
