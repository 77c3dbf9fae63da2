"""The initialisation of a matrix, with the comments and the formula of CALL: the paper's example.

``bsp papers call --set N=64:2048:x2 apps/papers/call/matrix.py`` measures it; of its three
constants only that of N**2 is about memory, and changes where the matrix leaves the cache.

Source: Gonzalez et al., Figure 3.
"""

import sys

import numpy as np

import bsplib


def main(bsp: bsplib.Group, N: int) -> float:  # noqa: N803  # the paper's name
    """Set all words of an N x N matrix; return their sum."""
    matrix = np.empty((N, N))
    for i in range(N):  # the pages of the matrix are mapped before it is measured
        matrix[i] = 0
    # cll sync matrix A[0] + A[1]*N + A[2]*N**2
    for i in range(N):
        matrix[i] = i + bsp.pid
    # cll end matrix
    return float(matrix.sum())


if __name__ == "__main__":
    print(bsplib.run(main, int(sys.argv[1]) if sys.argv[1:] else 512))
