"""The prices of communication between virtual processors, from the parameters of a Machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from bsplib.backends.launching import Before, Moved
from bsplib.machine import Machine
from bsplib.machine.measured import Begun, HRelation, Touched
from bsplib.machine.pattern import pattern_of


class MachinePrices:
    """Prices by what a probe measured, otherwise by g and l or those of the pattern.

    See :class:`Prices`.

    Args:
        machine: gives the prices.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._touched = defaultdict[int, Touched](Touched)
        self._begun = defaultdict[int, Begun](Begun)
        self.asks_for_calls = bool(machine.measured)
        """See :attr:`Prices.asks_for_calls`."""
        self.has_state = machine.has_state
        """See :attr:`Prices.has_state`."""

    def empty(self, nprocs: int, before: Before) -> float:
        """See :meth:`Prices.empty`."""
        relation = HRelation(0, wait=before.wait_ns / 1e9, apart=before.apart_ns / 1e9)
        return float(sum(self._machine.parts_of(relation, None, nprocs)))

    def cold(self, pid: int, sent_bytes: int) -> int:
        """See :meth:`Prices.cold`."""
        return self._touched[pid].cold(sent_bytes) if self._machine.measured else 0

    def fresh(self, pid: int, calls: int) -> int:
        """See :meth:`Prices.fresh`."""
        return self._begun[pid].fresh(calls) if self._machine.measured else 0

    def superstep(
        self, moved: Sequence[Moved], links: Iterable[tuple[int, int]], before: Before
    ) -> float:
        """See :meth:`Prices.superstep`."""
        machine = self._machine
        priced_by_pattern = machine.patterns or machine.measured
        pattern = machine.pattern_priced(pattern_of(links)) if priced_by_pattern else None
        return self._price(moved, pattern, len(moved), before)

    def oblivious(self, moved: Iterable[Moved], nprocs: int) -> float:
        """See :meth:`Prices.oblivious`."""
        return self._price(list(moved), None, nprocs, Before())

    def _price(
        self, moved: Sequence[Moved], pattern: str | None, nprocs: int, before: Before
    ) -> float:
        """Return the price for the greatest h, the most calls and the most new memory."""
        machine = self._machine
        h_in, h_out, calls, cold, fresh, *indexed = np.array(moved, np.int64).T
        h, placed, fetched = (
            int(machine.relation(*each).max()) for each in ((h_in, h_out), indexed[:2], indexed[2:])
        )
        state = before.wait_ns / 1e9, before.apart_ns / 1e9
        relation = HRelation(h, int(calls.max()), int(cold.max()), *state, placed, fetched)
        relation = relation._replace(fresh=int(fresh.max()))
        return float(sum(machine.parts_of(relation, pattern, nprocs)))
