"""What ``check=True`` looks for: legal calls that are hardly meant.

* Two puts of a superstep that write the same element: which one stays is defined,
  and rarely wanted.
* An hp-transfer that overlaps another: undefined.
* A source of hpput, or a destination of get, that is changed before the sync.

Every report names the places of both calls.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib import where
from bsplib.errors import OverlapError
from bsplib.messages import Fetch, unpack
from bsplib.place import Array, from_wire
from bsplib.registry import Registry


class Site(NamedTuple):
    """Where a transfer was called, as it travels with it."""

    operation: str
    place: str

    def words(self, source: int) -> str:
        """Say who called what, and where."""
        return f"{self.operation} of process {source} at {self.place}"


class _Watched(NamedTuple):
    """An array that is to stay as it is until the sync."""

    array: Array
    checksum: int
    site: Site


def here(operation: str) -> tuple[str, str]:
    """Return the place of the call that is being made, as plain values."""
    return operation, where.place()


class Watch:
    """The arrays of one process that are to stay as they are until the sync."""

    def __init__(self) -> None:
        self._watched: list[_Watched] = []

    def add(self, array: Array, operation: str) -> None:
        """Watch a source of hpput or a destination of get."""
        self._watched.append(_Watched(array, _checksum(array), Site(*here(operation))))

    def verify(self) -> None:
        """Raise if an array was changed, or is to be written twice; forget them all.

        Raises:
            OverlapError: it was; the sync is the second place. Or two gets, one of
                them an hpget, have one destination.
        """
        watched, self._watched = self._watched, []
        for array, checksum, site in watched:
            if _checksum(array) != checksum:
                what = "source" if site.operation == "hpput" else "destination"
                raise OverlapError(
                    f"the {what} of {site.operation} at {site.place} was changed before the "
                    f"sync at {where.place()}"
                )
        _check_destinations([each for each in watched if each.site.operation != "hpput"])


def _check_destinations(watched: list[_Watched]) -> None:
    for number, (array, _, site) in enumerate(watched):
        for other in watched[:number]:
            hp = "hpget" in (site.operation, other.site.operation)
            if hp and np.shares_memory(array, other.array):
                raise OverlapError(
                    f"the {site.operation} at {site.place} writes where the "
                    f"{other.site.operation} at {other.site.place} does"
                )


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)


class Writers:
    """Which transfer writes which element of this process's arrays in a superstep."""

    def __init__(self, registry: Registry, fetch: Fetch) -> None:
        self._registry = registry
        self._fetch = fetch
        self._calls: list[tuple[int, Site]] = []  # (source, site); numbered from 1
        self._owners: dict[int, NDArray[np.int32]] = {}  # by slot: number of the last call, or 0

    def add(self, source: int, puts: list[tuple[Any, ...]], sites: list[tuple[str, str]]) -> None:
        """Take down the puts of a process.

        Raises:
            OverlapError: one of them writes what another has written.
        """
        for put, site in zip(puts, sites, strict=True):
            self._calls.append((source, Site(*site)))
            owners = self._owners_of(put[0])
            index = self._index(put, owners)
            combines = len(put) == 5 and put[2] is not None
            if not combines:
                self._refuse(owners[index])
            owners[index] = len(self._calls)

    def read(self, reader: int, gets: list[tuple[Any, ...]], sites: list[tuple[str, str]]) -> None:
        """Compare the gets of a process with what has been taken down.

        Raises:
            OverlapError: an hpget reads what a put writes, or a get what an hpput writes.
        """
        for get, site in zip(gets, sites, strict=True):
            self._calls.append((reader, Site(*site)))
            owners = self._owners_of(get[0])
            read = owners[self._index(get, owners)]
            if site[0] != "hpget":
                by_hpput = [n for n, (_, put) in enumerate(self._calls, 1) if put[0] == "hpput"]
                read = np.where(np.isin(read, by_hpput), read, 0)
            self._refuse(read)

    def _owners_of(self, slot: int) -> NDArray[np.int32]:
        if slot not in self._owners:
            array = self._registry.at(slot).array
            assert array is not None  # whoever asked has checked
            self._owners[slot] = np.zeros(array.shape, np.int32)
        return self._owners[slot]

    def _index(self, transfer: tuple[Any, ...], owners: NDArray[np.int32]) -> Any:
        """Return what indexes the elements that a transfer names."""
        _, second, *rest = transfer
        if second is None:
            words = np.frombuffer(unpack(rest[1], self._fetch), np.int64)
            return np.unravel_index(words, owners.shape)
        if isinstance(second, tuple):
            return from_wire(second)
        return np.unravel_index(np.arange(second, second + self._count(transfer)), owners.shape)

    def _count(self, transfer: tuple[Any, ...]) -> int:
        """Return the elements of a transfer that is one stretch."""
        if len(transfer) == 4:  # a get says so
            return int(transfer[2])
        array = self._registry.at(transfer[0]).array
        assert array is not None
        return len(unpack(transfer[2], self._fetch)) // array.itemsize

    def _refuse(self, owners: NDArray[np.int32]) -> None:
        """Raise if somebody owns one of these elements already."""
        earlier = int(np.max(owners, initial=0))
        if earlier:
            first, second = self._calls[earlier - 1], self._calls[-1]
            count = int(np.count_nonzero(owners))
            raise OverlapError(
                f"{count} elements are named twice in one superstep: by the "
                f"{first[1].words(first[0])} and by the {second[1].words(second[0])}"
            )
