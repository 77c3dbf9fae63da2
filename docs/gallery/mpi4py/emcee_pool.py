"""Sample a Gaussian in eight dimensions with walkers that a pool of ranks evaluates."""

import emcee
import numpy as np
from schwimmbad import MPIPool

DIMENSIONS, WALKERS, STEPS = 8, 16, 12


def log_probability(theta: np.ndarray) -> float:
    """Return the logarithm of the density, by a sum that takes some time."""
    grid = np.linspace(0.5, 1.5, 200_000)
    return float(-0.5 * np.mean(grid) * np.dot(theta, theta))


pool = MPIPool()  # the workers stay in it until the program ends
np.random.seed(42)
first = np.random.randn(WALKERS, DIMENSIONS)
sampler = emcee.EnsembleSampler(WALKERS, DIMENSIONS, log_probability, pool=pool)
sampler.run_mcmc(first, STEPS)
chain = sampler.get_chain(flat=True)
print("mean", float(chain.mean()).hex(), "variance", float(chain.var()).hex())
