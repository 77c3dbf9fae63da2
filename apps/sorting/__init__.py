"""Parallel sorts, of keys in memory and of keys in a file.

Four programs have a command line, such as ``python -m bsplib.apps.sorting.sample_sort --help``:
``sample_sort``, ``psrs``, ``bitonic_sort`` and, for files, ``external_sort``. The other
modules are their parts.
"""
