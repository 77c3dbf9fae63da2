"""The prices of communication between virtual processors, from the parameters of a Machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.launching import Before, ObliviousPrices, Transfer
from bsplib.directions import Direction
from bsplib.machine import Machine
from bsplib.machine.measured import Begun, ByDirection, HRelation, Touched, amounts_of, staged_out
from bsplib.machine.pattern import pattern_of

_OWNER_SENDS = (Direction.IN, Direction.IN_BY_INDEX)


class New(NamedTuple):
    """What is new to a process in a superstep."""

    cold: int
    """How many of the bytes that leave it go through memory new to it."""
    fresh: int
    """How many of its first supersteps with calls are left, with this one."""


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
        self.has_state = machine.has_state
        """See :attr:`Prices.has_state`."""

    def empty(self, nprocs: int, before: Before) -> float:
        """See :meth:`Prices.empty`."""
        relation = HRelation(0, wait=before.wait_ns / 1e9, apart=before.apart_ns / 1e9)
        return float(sum(self._machine.parts_of(relation, None, nprocs)))

    def superstep(
        self, transfers: Sequence[Transfer], members: Sequence[int], before: Before
    ) -> float:
        """See :meth:`Prices.superstep`."""
        machine, nprocs = self._machine, len(members)
        priced_by_pattern = machine.patterns or machine.measured
        links = (_link(each) for each in transfers)
        pattern = machine.pattern_priced(pattern_of(links)) if priced_by_pattern else None
        if not machine.measured:
            sums = _Bytes(nprocs)
            sums.add(transfers)
            return self.price_of_bytes(sums, range(nprocs), pattern)
        amounts = _Amounts(nprocs)
        amounts.add(transfers)
        found = amounts.by_direction()
        new = [self.new(found, pid, member) for pid, member in enumerate(members)]
        return self.price(found, slice(None), new, pattern, nprocs, before)

    def oblivious(self, members: Sequence[int]) -> ObliviousPrices:
        """See :meth:`Prices.oblivious`."""
        kind = _ObliviousByProbe if self._machine.measured else _ObliviousByBytes
        return kind(self, members)

    def new(self, found: Mapping[int, ByDirection], pid: int, member: int) -> New:
        """Return what is new to a process in its next superstep; called once for each of them.

        Args:
            found: what is transferred.
            pid: of the process in its group.
            member: its pid in the root group.
        """
        made = {direction: int(each.made[pid]) for direction, each in found.items()}
        sent = staged_out(found)
        cold = self._touched[member].cold(0 if sent is None else int(sent[pid]))
        in_collectives = made.get(Direction.OUT_COPIED, 0)
        return New(cold, self._begun[member].fresh(sum(made.values()), in_collectives))

    def price_of_bytes(self, sums: _Bytes, pids: Iterable[int], pattern: str | None) -> float:
        """Return the price for the greatest h of some processes, on a Machine without probe."""
        h = max(self._machine.relation(sums.h_in[pid], sums.h_out[pid]) for pid in pids)
        return float(sum(self._machine.parts_of(HRelation(int(h)), pattern, len(sums.h_in))))

    def price(
        self,
        found: Mapping[int, ByDirection],
        pids: slice | list[int],
        new: Iterable[New],
        pattern: str | None,
        nprocs: int,
        before: Before,
    ) -> float:
        """Return the price for the greatest of all amounts of some processes."""
        machine = self._machine
        chosen = {
            direction: ByDirection(*(each[pids] for each in amounts))
            for direction, amounts in found.items()
        }
        nothing = np.zeros(nprocs, np.int64)[pids]
        h_in, h_out, calls, _ = sum(map(np.stack, chosen.values()), np.stack([nothing] * 4))
        cold, fresh = (max(each) for each in zip(*new, strict=True))
        relation = HRelation(
            int(machine.relation(h_in, h_out).max()),
            int(calls.max()),
            cold,
            before.wait_ns / 1e9,
            before.apart_ns / 1e9,
            fresh=fresh,
            **{
                name: int(amount.max())
                for name, amount in amounts_of(chosen, machine.relation, nothing).items()
                if amount is not nothing
            },
        )
        return float(sum(machine.parts_of(relation, pattern, nprocs)))


def _link(transfer: Transfer) -> tuple[int, int]:
    """Return sender and receiver; the owner sends the values of a get."""
    caller, partner, direction, _, _ = transfer
    return (partner, caller) if direction in _OWNER_SENDS else (caller, partner)


# -- what processes transfer in a superstep, summed up --------------------------------------------


class _Bytes:
    """The bytes that come to each process, and that leave it, by pid."""

    def __init__(self, nprocs: int) -> None:
        self.h_in, self.h_out = [0] * nprocs, [0] * nprocs

    def add(self, transfers: Iterable[Transfer]) -> None:
        """Add transfers."""
        for transfer in transfers:
            source, to = _link(transfer)
            self.h_in[to] += transfer.nbytes
            self.h_out[source] += transfer.nbytes


class _Amounts:
    """What each process transfers in each direction."""

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._sums: dict[int, NDArray[np.int64]] = {}

    def add(self, transfers: Iterable[Transfer]) -> None:
        """Add transfers."""
        for transfer in transfers:
            caller, partner, direction, nbytes, count = transfer
            if direction not in self._sums:
                self._sums[direction] = np.zeros((4, self._nprocs), np.int64)
            source, to = _link(transfer)
            own = self._sums[direction]
            own[0, to] += nbytes
            own[1, source] += nbytes
            own[2, caller] += count
            own[3, partner] += count

    def by_direction(self) -> dict[int, ByDirection]:
        """Return the sums by direction, by pid."""
        return {direction: ByDirection(*own) for direction, own in self._sums.items()}


# -- oblivious supersteps -------------------------------------------------------------------------


class _ObliviousByBytes:
    """Prices on a Machine without probe; see :class:`ObliviousPrices`."""

    def __init__(self, prices: MachinePrices, members: Sequence[int]) -> None:
        self._prices, self._sums = prices, _Bytes(len(members))

    def add(self, transfers: Sequence[Transfer], pid: int) -> None:  # noqa: ARG002  # they name it
        """See :meth:`ObliviousPrices.add`."""
        self._sums.add(transfers)

    def price(self, pids: Sequence[int]) -> float:
        """See :meth:`ObliviousPrices.price`."""
        return self._prices.price_of_bytes(self._sums, pids, None)


class _ObliviousByProbe:
    """Prices by what a probe measured; see :class:`ObliviousPrices`."""

    def __init__(self, prices: MachinePrices, members: Sequence[int]) -> None:
        self._prices, self._members = prices, members
        self._amounts = _Amounts(len(members))
        self._new: dict[int, New] = {}

    def add(self, transfers: Sequence[Transfer], pid: int) -> None:
        """See :meth:`ObliviousPrices.add`."""
        self._amounts.add(transfers)
        own = _Amounts(len(self._members))
        own.add(transfers)
        self._new[pid] = self._prices.new(own.by_direction(), pid, self._members[pid])

    def price(self, pids: Sequence[int]) -> float:
        """See :meth:`ObliviousPrices.price`."""
        found, new = self._amounts.by_direction(), [self._new[pid] for pid in pids]
        return self._prices.price(found, [*pids], new, None, len(self._members), Before())
