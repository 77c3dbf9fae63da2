"""What all versions share: a graph of links, and one step for some of its pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.whole.parts import cut

Ranks = NDArray[np.float64]
DAMPING = 0.85


@dataclass(frozen=True)
class Problem:
    """A random graph of sites, most of whose links stay inside, and the change at which to stop."""

    pages: int = 600_000
    links: int = 6_000_000
    site: int = 1000
    leaving: float = 0.02
    tolerance: float = 1e-12

    def __str__(self) -> str:
        return f"PageRank, {self.pages} pages with {self.links} links"

    def mine(self, pid: int, nprocs: int) -> slice:
        """Return which pages are those of a process."""
        return cut(self.pages, pid, nprocs)

    def reference(self) -> Ranks:
        """Return the ranks of all pages, computed by one process."""
        links, dangling = part(self, 0, 1)
        ranks, change = np.full(self.pages, 1 / self.pages), 1.0
        while change > self.tolerance:
            before, ranks = ranks, follow(links, dangling, ranks)
            change = np.abs(ranks - before).sum()
        return ranks

    def join(self, pieces: list[Ranks]) -> Ranks:
        """Return the ranks, of which each process has a piece."""
        return np.concatenate(pieces)

    def agrees(self, found: Ranks, expected: Ranks) -> bool:
        """Tell whether a result is the reference but for the order of additions."""
        return bool(np.abs(found - expected).sum() <= 10 * self.tolerance)


@cache
def part(problem: Problem, pid: int, nprocs: int) -> tuple[sparse.csr_array, NDArray[np.intp]]:
    """Return the links to a process's pages, weighted, and the pages without links."""
    sources, targets = _ends_of_links(problem)
    degrees = np.bincount(sources, minlength=problem.pages)
    mine = problem.mine(pid, nprocs)
    here = (targets >= mine.start) & (targets < mine.stop)
    sources, targets = sources[here], targets[here] - mine.start
    shape = mine.stop - mine.start, problem.pages
    links = sparse.csr_array((1.0 / degrees[sources], (targets, sources)), shape)
    return links, np.flatnonzero(degrees == 0)


def _ends_of_links(problem: Problem) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the page on which each link is, and the page to which it leads.

    The first pages of a site, and of all, receive more links than others.
    """
    random = np.random.default_rng(1)
    sources = random.integers(problem.pages, size=problem.links, dtype=np.int32)
    inside = sources // problem.site * problem.site
    inside += (problem.site * random.random(problem.links) ** 2).astype(np.int32)
    outside = (problem.pages * random.random(problem.links) ** 2).astype(np.int32)
    leaves = (random.random(problem.links) < problem.leaving) | (inside >= problem.pages)
    return sources, np.where(leaves, outside, inside)


def follow(links: sparse.csr_array, dangling: NDArray[np.intp], ranks: Ranks) -> Ranks:
    """Return the ranks of some pages after a step from the ranks of all."""
    followed = links @ ranks
    followed *= DAMPING
    followed += (1 - DAMPING + DAMPING * ranks[dangling].sum()) / len(ranks)
    return followed
