"""Stands for Cython's own module where Cython is not installed.

A module of the core asks ``cython.compiled`` whether it runs compiled. That Cython is needed
to build bsplib, and not to run it, is the purpose of this module.
"""

compiled = False
