"""Measurements of bsplib beside its peers and the limits of the machine, kept as JSON."""
