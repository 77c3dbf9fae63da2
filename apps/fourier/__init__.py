"""Fast Fourier transforms: three programs and their common parts.

Each has a command line: ``python -m bsplib.apps.fourier.fft --help``, and the same of
``fft_barrier_free`` and ``fft_cyclic``.
"""
