"""Records an unmodified mpi4py program: ``bsp record OUT prog.py``.

Each rank writes a file of its own while the program runs (:mod:`bsplib.record.events`); rank 0
joins them at the end. Nothing of the profiler is imported in a rank.
"""
