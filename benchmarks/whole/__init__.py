"""Whole programs, each written for bsplib and for what a user would take instead.

A folder is a program. Its ``problem.py`` has what all versions share: the input, the sequential
kernels and the reference. Each ``with_*.py`` is one complete version that can be run by itself.
"""
