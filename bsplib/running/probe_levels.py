"""Measures g and l between hosts, and inside them.

Between hosts, every process puts equally much into each process of all other hosts; inside,
the processes of each host make a group, and all groups make all-to-alls at the same time.
"""

from __future__ import annotations

import platform
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bsplib.running.probe_supersteps import speed_of, superstep_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bsplib.group import Group

BETWEEN, INSIDE = "between hosts", "inside a host"
RELATIONS = tuple(4**power for power in range(3, 12))
"""h in bytes, also large enough that a link of a millisecond shows its g."""
_BATCH_S = 3e-2
"""Between hosts: a process may begin a superstep as much later as a message travels. Over several
supersteps in a row this evens out.
"""


def host_of(_: Group) -> str:
    """Return the name of the host of this process."""
    return platform.node()


def relations_of_levels(hosts: Sequence[str]) -> dict[str, list[int]]:
    """Return the h of each superstep that is measured, by level; none inside hosts of one process.

    Args:
        hosts: of the processes, by pid.
    """
    sizes = Counter(hosts).values()
    most = {BETWEEN: len(hosts) - min(sizes), INSIDE: max(sizes) - 1}
    return {level: [h // n * n for h in RELATIONS] if n else [] for level, n in most.items()}


def measure_levels(bsp: Group, *, hosts: Sequence[str]) -> tuple[float, NDArray[np.float64]]:
    """Measure both levels with every h once, in a process of the pool.

    Args:
        bsp: the group of all processes.
        hosts: of the processes, by pid.

    Returns:
        flop/s of this process, and the seconds of a superstep by level and h; those inside a
        host are 0 for a process that is alone on its host.
    """
    speed = speed_of(bsp)
    sizes = Counter(hosts)
    here = hosts[bsp.pid]
    others = [pid for pid, host in enumerate(hosts) if host != here]
    between = _measured(bsp, others, len(hosts) - min(sizes.values()))
    inside = np.zeros(len(RELATIONS))
    with bsp.split(list(sizes).index(here)) as sub:
        if sub is not None and sub.nprocs > 1:
            near = [pid for pid in range(sub.nprocs) if pid != sub.pid]
            inside = _measured(sub, near, max(sizes.values()) - 1)
    return speed, np.stack([between, inside])


def _measured(bsp: Group, receivers: Sequence[int], most: int) -> NDArray[np.float64]:
    """Return the seconds of supersteps in which h bytes are shared out among receivers.

    Args:
        bsp: the group.
        receivers: the processes into which this one puts.
        most: the number of receivers of the process that has most.
    """
    source = np.ones(RELATIONS[-1] // most, np.uint8)
    destination = bsp.zeros(bsp.nprocs * len(source), np.uint8)

    def exchange(size: int) -> None:
        for pid in receivers if size else ():
            bsp.put(pid, source[:size], destination, offset=bsp.pid * size)

    return np.array([superstep_between_s(bsp, partial(exchange, h // most)) for h in RELATIONS])


def superstep_between_s(bsp: Group, communicate: Callable[[], None]) -> float:
    """Return the seconds of a superstep; see :func:`superstep_s`."""
    return superstep_s(bsp, communicate, _BATCH_S)


def over_rounds(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the times to which lines are fitted: the least, since a disturbed one is too long.

    Args:
        seconds: by round, in the first dimension.
    """
    least: NDArray[np.float64] = seconds.min(axis=0)
    return least
