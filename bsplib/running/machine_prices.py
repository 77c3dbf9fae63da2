"""The prices of communication between virtual processors, from the parameters of a Machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.launching import Before, New, Transfer
from bsplib.directions import Direction
from bsplib.machine import Machine
from bsplib.machine.measured import Begun, ByDirection, HRelation, Touched, amounts_of, staged_out
from bsplib.machine.pattern import pattern_of

_OWNER_SENDS = (Direction.IN, Direction.IN_BY_INDEX)


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
            return self._price_by_bytes(transfers, range(nprocs), pattern, nprocs)
        found = _by_direction(transfers, nprocs)
        new = [self._new(found, pid, member) for pid, member in enumerate(members)]
        return self._price(found, slice(None), new, pattern, nprocs, before)

    def new(self, transfers: Sequence[Transfer], pid: int, member: int) -> New:
        """See :meth:`Prices.new`."""
        if not self._machine.measured:
            return New()
        nprocs = 1 + max((each.partner for each in transfers), default=pid)
        return self._new(_by_direction(transfers, max(nprocs, pid + 1)), pid, member)

    def oblivious(
        self, transfers: Sequence[Transfer], new: Mapping[int, New], nprocs: int
    ) -> float:
        """See :meth:`Prices.oblivious`."""
        if not self._machine.measured:
            return self._price_by_bytes(transfers, new, None, nprocs)
        found = _by_direction(transfers, nprocs)
        return self._price(found, list(new), list(new.values()), None, nprocs, Before())

    def _new(self, found: Mapping[int, ByDirection], pid: int, member: int) -> New:
        calls = sum(int(each.made[pid]) for each in found.values())
        sent = staged_out(found)
        cold = self._touched[member].cold(0 if sent is None else int(sent[pid]))
        return New(cold, self._begun[member].fresh(calls))

    def _price_by_bytes(
        self, transfers: Iterable[Transfer], pids: Iterable[int], pattern: str | None, nprocs: int
    ) -> float:
        """Return the price for the greatest h of some processes, on a Machine without probe."""
        h_in, h_out = [0] * nprocs, [0] * nprocs
        for transfer in transfers:
            source, to = _link(transfer)
            h_in[to] += transfer.nbytes
            h_out[source] += transfer.nbytes
        h = max(self._machine.relation(h_in[pid], h_out[pid]) for pid in pids)
        return float(sum(self._machine.parts_of(HRelation(int(h)), pattern, nprocs)))

    def _price(
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


def _by_direction(transfers: Iterable[Transfer], nprocs: int) -> dict[int, ByDirection]:
    """Return the sums of all processes by direction, by pid."""
    sums: dict[int, NDArray[np.int64]] = {}
    for transfer in transfers:
        caller, partner, direction, nbytes, count = transfer
        if direction not in sums:
            sums[direction] = np.zeros((4, nprocs), np.int64)
        source, to = _link(transfer)
        own = sums[direction]
        own[0, to] += nbytes
        own[1, source] += nbytes
        own[2, caller] += count
        own[3, partner] += count
    return {direction: ByDirection(*own) for direction, own in sums.items()}
