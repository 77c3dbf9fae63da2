"""The prices of communication between virtual processors, from the parameters of a Machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bsplib.backends.launching import ObliviousPrices, Transfer
from bsplib.directions import is_out
from bsplib.machine import Machine
from bsplib.machine.measured import HRelation
from bsplib.machine.pattern import pattern_of


class MachinePrices:
    """Prices by what a probe measured, otherwise by g and l or those of the pattern.

    See :class:`Prices`.

    Args:
        machine: gives the prices.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def empty(self, nprocs: int) -> float:
        return float(sum(self._machine.parts_of(HRelation(0), None, nprocs)))

    def superstep(self, transfers: Sequence[Transfer], nprocs: int) -> float:
        machine = self._machine
        priced_by_pattern = machine.patterns or machine.measured
        links = (_link(each) for each in transfers)
        pattern = machine.pattern_priced(pattern_of(links)) if priced_by_pattern else None
        sums = _Sums(nprocs)
        sums.add(transfers)
        return self.price(sums, range(nprocs), pattern)

    def oblivious(self, nprocs: int) -> ObliviousPrices:
        return _ObliviousSums(self, nprocs)

    def price(self, sums: _Sums, pids: Iterable[int], pattern: str | None) -> float:
        """Return the price for the greatest h, and the most calls, of some processes."""
        amounts = [
            (self._machine.relation(sums.h_in[pid], sums.h_out[pid]), sums.calls[pid])
            for pid in pids
        ]
        h, calls = map(max, zip(*amounts, strict=True))
        relation = HRelation(int(h), int(calls))
        return float(sum(self._machine.parts_of(relation, pattern, len(sums.calls))))


def _link(transfer: Transfer) -> tuple[int, int]:
    """Return sender and receiver; the owner sends the values of a get."""
    caller, partner, direction, _, _ = transfer
    return (caller, partner) if is_out(direction) else (partner, caller)


class _Sums:
    """The bytes that come to each process and leave it, and the transfers that it calls for."""

    def __init__(self, nprocs: int) -> None:
        self.h_in, self.h_out, self.calls = [0] * nprocs, [0] * nprocs, [0] * nprocs

    def add(self, transfers: Iterable[Transfer]) -> None:
        """Add transfers."""
        for transfer in transfers:
            source, to = _link(transfer)
            self.h_in[to] += transfer[3]
            self.h_out[source] += transfer[3]
            self.calls[transfer[0]] += transfer[4]


class _ObliviousSums:
    """Prices of an oblivious superstep; see :class:`ObliviousPrices`."""

    def __init__(self, prices: MachinePrices, nprocs: int) -> None:
        self._prices, self._sums = prices, _Sums(nprocs)

    def add(self, transfers: Sequence[Transfer]) -> None:
        self._sums.add(transfers)

    def price(self, pids: Sequence[int]) -> float:
        return self._prices.price(self._sums, pids, None)
