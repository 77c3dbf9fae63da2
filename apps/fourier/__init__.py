"""Fast Fourier transforms: three programs, and what they have in common.

Each has a command line: ``python -m apps.fourier.fft --help``, and the same of
``fft_barrier_free`` and ``fft_cyclic``.
"""
