"""From what the ranks of an mpi4py program have recorded to a trace, after the program."""
