"""A driven cavity by the lattice Boltzmann method on a grid of ranks."""

import numpy as np
import pylbm
import sympy as sp
from mpi4py import MPI

X, Y, LA, rho, qx, qy = sp.symbols("X, Y, LA, rho, qx, qy")
WIDTH, VELOCITY, VISCOSITY = 64, 0.05, 5e-3
relaxation = [0, 0, 0, 1.2, 1.2, 1.2, 1.2, 1.6, 1.6]


def moving(f, m, x, y):  # noqa: ARG001  # as pylbm calls it
    """Let the fluid at the lid move."""
    m[qx] = VELOCITY


simulation = pylbm.Simulation(
    {
        "box": {"x": [0.0, 1.0], "y": [0.0, 1.0], "label": [0, 0, 0, 1]},
        "space_step": 1 / WIDTH,
        "scheme_velocity": LA,
        "parameters": {LA: 1.0},
        "schemes": [
            {
                "velocities": list(range(9)),
                "conserved_moments": [rho, qx, qy],
                "polynomials": [
                    1,
                    X,
                    Y,
                    3 * (X**2 + Y**2) - 4,
                    (9 * (X**2 + Y**2) ** 2 - 21 * (X**2 + Y**2) + 8) / 2,
                    3 * X * (X**2 + Y**2) - 5 * X,
                    3 * Y * (X**2 + Y**2) - 5 * Y,
                    X**2 - Y**2,
                    X * Y,
                ],
                "relaxation_parameters": relaxation,
                "equilibrium": [
                    rho,
                    qx,
                    qy,
                    -2 * rho + 3 * (qx**2 + qy**2),
                    rho - 3 * (qx**2 + qy**2),
                    -qx,
                    -qy,
                    qx**2 - qy**2,
                    qx * qy,
                ],
            }
        ],
        "init": {rho: 1.0, qx: 0.0, qy: 0.0},
        "boundary_conditions": {
            0: {"method": {0: pylbm.bc.BouzidiBounceBack}},
            1: {"method": {0: pylbm.bc.BouzidiBounceBack}, "value": moving},
        },
        "generator": "numpy",
    }
)
for _ in range(150):
    simulation.one_time_step()
total = MPI.COMM_WORLD.reduce(float(np.sum(simulation.m[qx] ** 2)))
if MPI.COMM_WORLD.rank == 0:
    print("momentum", total.hex())
