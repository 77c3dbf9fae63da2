"""The Fourier transform of a long signal, in two halves with one exchange between them.

The signal is written as a matrix, row by row. Each process has some columns and transforms them.
Then all multiply by roots of unity, exchange blocks so that each process has some rows, and
transform these. The transform of the signal is read column by column.

Cost: for n values, w = 5 n/p log2 n and h = 16 (1 - 1/p) n/p bytes:
5 n/p log2 n + 16 (1 - 1/p) n/p g + l.
Teaches: ``alltoall(x, axis=(0, 1))`` turns blocks of columns into blocks of rows; local work is
left to numpy.
Source: Bisseling, Parallel Scientific Computation, section 3.4.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, rows: int = 3072, columns: int = 2048) -> Any:
    """Return the transform of a random signal of rows * columns values, on process 0."""
    signal = np.random.default_rng(1).random((rows, columns))
    mine = np.array_split(np.arange(columns), bsp.nprocs)[bsp.pid]
    half = np.fft.fft(signal[:, mine], axis=0)
    half *= np.exp(np.outer(np.arange(rows), mine) * (-2j * np.pi / signal.size))
    whole = np.fft.fft(bsp.alltoall(half, axis=(0, 1)), axis=1)
    blocks = bsp.gather(whole, axis=0)
    return None if blocks is None else blocks.T.ravel()


if __name__ == "__main__":
    print(bsplib.run(main)[0])
