"""How processes meet: one package a backend, behind :mod:`bsplib.backends.base`."""
