"""Invert a derivative operator on a distributed model by conjugate gradients."""

import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

ROWS, COLUMNS = 100, 4000
size, rank = MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank
operator = pylops_mpi.MPIFirstDerivative((ROWS * size, COLUMNS), kind="centered")
smoothing = pylops_mpi.MPIBlockDiag([pylops.Identity(ROWS * COLUMNS) * 2.0])
model = pylops_mpi.DistributedArray(global_shape=ROWS * COLUMNS * size)
model[:] = np.random.default_rng(rank).standard_normal(model.local_shape)
data = operator @ (smoothing @ model)
start = pylops_mpi.DistributedArray(global_shape=ROWS * COLUMNS * size)
start[:] = 0
found = pylops_mpi.cgls(operator @ smoothing, data, x0=start, niter=6, tol=1e-12)[0]
norm = float(np.asarray(found.norm()).item())
if rank == 0:
    print("norm", norm.hex())
