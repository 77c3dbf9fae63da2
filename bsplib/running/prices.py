"""The prices of communication between virtual processors, from the parameters of a Machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bsplib.machine import Machine
from bsplib.machine.pattern import pattern_of


class MachinePrices:
    """Prices by g and l, or by g and L of the pattern; see :class:`Prices`.

    Args:
        machine: its g, l and patterns give the prices.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def empty(self) -> float:
        """See :meth:`Prices.empty`."""
        return self._machine.price(0)

    def superstep(
        self, h_in: Sequence[int], h_out: Sequence[int], links: Iterable[tuple[int, int]]
    ) -> float:
        """See :meth:`Prices.superstep`."""
        machine = self._machine
        h = int(machine.relation(np.array(h_in), np.array(h_out)).max())
        pattern = pattern_of(links) if machine.patterns else None
        return machine.price(h, machine.pattern_priced(pattern))

    def oblivious(self, relations: Iterable[tuple[int, int]]) -> float:
        """See :meth:`Prices.oblivious`."""
        machine = self._machine
        return machine.price(max(int(machine.relation(*relation)) for relation in relations))
