"""Decaying vortices by a pseudo-spectral method, with transforms that mpi4py-fft distributes."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

POINTS, STEPS, TIME_STEP, VISCOSITY = 32, 10, 0.01, 0.01
comm = MPI.COMM_WORLD
fft = PFFT(comm, (POINTS,) * 3, axes=(0, 1, 2), dtype=np.float64, grid=(-1,))

real = [np.arange(n)[part] for n, part in zip((POINTS,) * 3, fft.local_slice(False), strict=True)]
x, y, z = np.meshgrid(*(2 * np.pi * each / POINTS for each in real), indexing="ij", sparse=True)
numbers = [np.fft.fftfreq(POINTS, 1 / POINTS)] * 2 + [np.fft.rfftfreq(POINTS, 1 / POINTS)]
local = [each[part] for each, part in zip(numbers, fft.local_slice(True), strict=True)]
wave = np.array(np.broadcast_arrays(*np.meshgrid(*local, indexing="ij", sparse=True)))
square = np.where((wave**2).sum(0) == 0, 1, (wave**2).sum(0))

velocity = newDistArray(fft, False, rank=1)
velocity[0] = np.sin(x) * np.cos(y) * np.cos(z)
velocity[1] = -np.cos(x) * np.sin(y) * np.cos(z)
velocity[2] = 0
spectrum = newDistArray(fft, True, rank=1)
curl = newDistArray(fft, False, rank=1)
change = newDistArray(fft, True, rank=1)

for i in range(3):
    fft.forward(velocity[i], spectrum[i])
for _ in range(STEPS):
    for i in range(3):
        fft.backward(spectrum[i], velocity[i])
    for i, each in enumerate(np.cross(1j * wave, np.asarray(spectrum), axis=0)):
        change[0][:] = each
        fft.backward(change[0], curl[i])
    for i, each in enumerate(np.cross(np.asarray(velocity), np.asarray(curl), axis=0)):
        curl[i][:] = each
    for i in range(3):
        fft.forward(curl[i], change[i])
    pressure = (wave * np.asarray(change)).sum(0) / square
    step = np.asarray(change) - wave * pressure - VISCOSITY * square * np.asarray(spectrum)
    spectrum[:] = np.asarray(spectrum) + TIME_STEP * step
for i in range(3):
    fft.backward(spectrum[i], velocity[i])
energy = comm.reduce(float((np.asarray(velocity) ** 2).sum()) / POINTS**3)
if comm.rank == 0:
    print("energy", energy.hex())
