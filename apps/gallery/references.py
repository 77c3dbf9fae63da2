"""Sequential programs that compute what the programs of the gallery do.

Each takes the number of processes and the arguments of ``main``. The number matters where each
process draws its own random values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from bsplib.apps.gallery import heat3d as cube
from bsplib.apps.gallery import pipeline as film
from bsplib.apps.gallery.farm import row
from bsplib.apps.gallery.monte_carlo import deviation


def heat(_: int, size: int, steps: int) -> Any:
    """Return the temperatures of the plate, by one loop over the whole array."""
    plate = np.zeros((size + 2, size))
    plate[0] = 100.0
    for _step in range(steps):
        sums = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate[1:-1, 1:-1] = sums / 4
    return plate[1:-1]


def kmeans(nprocs: int, size: int, clusters: int, rounds: int) -> Any:
    """Return the centres, from the distances of all points to all of them."""
    points = np.random.default_rng(1).random((size, 3))
    centres = points[: min(clusters, len(np.array_split(points, nprocs)[0]))]
    for _ in range(rounds):
        nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([points[nearest == c].mean(axis=0) for c in range(len(centres))])
    return centres


def conjugate_gradients(_: int, size: int, tolerance: float) -> Any:
    """Return the solution that numpy finds by elimination."""
    del tolerance
    numbers = np.arange(size)
    return np.linalg.solve(np.exp(-np.abs(numbers[:, None] - numbers) / 20), np.sin(0.1 * numbers))


def nbody(_: int, size: int, steps: int, seconds: float) -> Any:
    """Return the places, by a loop over the bodies."""
    places = np.random.default_rng(1).random((size, 3))
    speeds = np.zeros_like(places)
    for _step in range(steps):
        for body in range(size):
            apart = places - places[body]
            cubes = ((apart**2).sum(axis=1) + 1e-4) ** 1.5
            speeds[body] += seconds / size * (apart / cubes[:, None]).sum(axis=0)
        places += seconds * speeds
    return places


def cannon(nprocs: int, size: int) -> Any:
    """Return the blocks of the product that numpy computes."""
    q = int(nprocs**0.5)
    numbers = np.outer(np.arange(size), np.arange(size))
    bands = np.split(np.cos(numbers) @ np.sin(numbers), q)
    return [block for band in bands for block in np.split(band, q, axis=1)]


def word_count(_: int, words: Any) -> Any:
    """Return the ten most frequent words."""
    return sorted(Counter(words.tolist()).items(), key=lambda item: (-item[1], item[0]))[:10]


def histogram(nprocs: int, batch: int, batches: int, bins: int) -> Any:
    """Return the histogram that numpy counts."""
    each = batches * (batch // nprocs)
    values = np.concatenate([random.random(each) for random in streams(nprocs)]) ** 2
    return np.bincount((bins * values).astype(int), minlength=bins)


def monte_carlo(nprocs: int, error: float, batch: int, days: int) -> Any:
    """Return the price, its standard error, and the number of paths."""
    generators, pays = streams(nprocs), np.empty(0)
    total = np.zeros(3)
    while not len(pays) or deviation(total) > error:
        shape = batch // nprocs, days
        steps = [each.normal(-0.02 / days, 0.2 / days**0.5, shape) for each in generators]
        prices = 100 * np.exp(np.concatenate(steps).cumsum(axis=1))
        pays = np.append(pays, np.maximum(prices.mean(axis=1) - 100, 0))
        total = np.array([len(pays), pays.sum(), (pays**2).sum()])
    return pays.mean(), deviation(total), len(pays)


def farm(_: int, size: int, slice_s: float) -> Any:
    """Return the rows of the picture, one after the other."""
    del slice_s
    return np.array([row(number, size) for number in range(size)])


def heat3d(_: int, size: int, steps: int) -> Any:
    """Return the temperatures of the cube, by one loop over the whole array."""
    whole = np.zeros((size + 2, size + 2, size + 2))
    whole[0] = 100.0
    for _step in range(steps):
        whole[1:-1, 1:-1, 1:-1] = cube.mean(whole)
    return whole[1:-1, 1:-1, 1:-1]


def pipeline(_: int, frames: int, size: int, filters: int) -> Any:
    """Return the greatest value of each frame, one frame after the other."""
    found = []
    for number in range(frames):
        frame = film.camera(number, size)
        for each in range(filters):
            frame = film.filtered(frame, each)
        found.append(frame.max())
    return found


def prefix_sums(_: int, size: int) -> Any:
    """Return how high the walk comes, and after how many steps."""
    numbers = np.arange(size, dtype=float)
    places = np.where(np.sin(numbers * numbers) < 0, -1, 1).cumsum()
    return int(places.max()), int(places.argmax()) + 1


def lu(_: int, size: int) -> Any:
    """Return L and U in one matrix and the order of the rows, column by column."""
    a = np.random.default_rng(1).random((size, size))
    order = np.arange(size)
    for k in range(size):
        pivot = int(k + np.abs(a[k:, k]).argmax())
        a[[k, pivot]] = a[[pivot, k]]
        order[[k, pivot]] = order[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def sparse_matrix_vector(nprocs: int, size: int, count: int, rounds: int) -> Any:
    """Return the vector, by products with a dense matrix."""
    matrix, vector = np.zeros((size, size)), np.ones(size)
    for random in streams(nprocs):
        rows, columns = random.integers(size, size=(2, count // nprocs))
        np.add.at(matrix, (rows, columns), random.random(count // nprocs))
    for _ in range(rounds):
        vector = matrix @ vector
        vector /= vector.max()
    return vector


def fft(_: int, rows: int, columns: int) -> Any:
    """Return the transform that numpy computes of the whole signal."""
    return np.fft.fft(np.random.default_rng(1).random((rows, columns)).ravel())


def sample_sort(nprocs: int, size: int) -> Any:
    """Return the keys that numpy sorts."""
    return np.sort(np.concatenate([each.normal(size=size // nprocs) for each in streams(nprocs)]))


def streams(nprocs: int) -> list[np.random.Generator]:
    """Return the generators of ``bsp.rng(seed=1)`` of all processes."""
    sequences = [np.random.SeedSequence(1, spawn_key=(pid,)) for pid in range(nprocs)]
    return [np.random.default_rng(sequence) for sequence in sequences]


OF: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(heat, kmeans, conjugate_gradients, nbody, cannon, word_count, histogram, monte_carlo),
        *(farm, prefix_sums, lu, sparse_matrix_vector, fft, sample_sort, heat3d, pipeline),
    )
}
"""The sequential program of each module of the gallery, by its name."""
