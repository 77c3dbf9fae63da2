"""Parallel sorts, of keys in memory and of keys in a file.

Four programs, each with a command line: ``python -m apps.sorting.sample_sort --help``, and
the same of ``psrs``, ``bitonic_sort`` and, for files, ``external_sort``. The other modules
are what they are made of.
"""
