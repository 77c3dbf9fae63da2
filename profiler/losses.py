"""The losses of a run, each with its seconds and its sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bsplib.profiler.hosts import ProcessNames
from bsplib.profiler.verdict import sentence

if TYPE_CHECKING:
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.loss_drafts import ClusteredLoss


@dataclass(frozen=True)
class DescribedLoss:
    """A loss at one place of the program, in seconds and with its sentence."""

    seconds: float
    """Seconds of the elapsed time that are lost, on average over the processes."""
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``."""
    habit: str
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    part: str
    """The part of the account that it is a part of."""
    chain: tuple[str, ...]
    """Ids of the nodes from ``main`` to the cost centre; empty for the whole run."""
    callers: tuple[str, ...]
    """Ids of the functions that called the one with the cost centre."""
    pids: tuple[int, ...]
    """The process, or the processes of the sub-group, that the others wait for."""
    superstep: int | None
    """Number of the superstep that bears most of it, for ``one-off``."""
    group: int
    """Position in ``run.groups`` of the group of that superstep."""
    count: int
    """Number of supersteps."""
    who: str
    """Their names, with their hosts where there are several; empty for the whole run."""
    text: str = field(repr=False)
    """A sentence."""


def described(book: GraphBook, clustered: ClusteredLoss) -> DescribedLoss:
    """Return a clustered loss with its seconds and its sentence."""
    names = ProcessNames(book.callgraph.run)
    told = sentence(book, clustered)
    return DescribedLoss(
        told.seconds,
        clustered.kind,
        clustered.habit,
        clustered.part,
        clustered.chain,
        tuple(dict.fromkeys(site.function for site in clustered.sites)),
        clustered.pids,
        clustered.superstep,
        clustered.group,
        clustered.count,
        names(clustered.pids) if clustered.pids else "",
        told.text,
    )
