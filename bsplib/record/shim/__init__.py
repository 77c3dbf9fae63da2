"""The shim in C that records the calls of MPI; :mod:`bsplib.record.build` compiles it."""
