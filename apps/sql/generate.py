"""Random relations ITEM, QNT and TRAN, of any size.

What stands in a row depends on its place and on the seed alone, so that it is the same
whichever process makes it, and any process can make any rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.relation import CODE, Column, QueryError, Relation, Words

Places = NDArray[np.int64]

PAPER_SIZE = 12_000
"""Records of the input relations of Jarvis et al., Table 1."""
TRAN_PER_ITEM = 20
_FIRST_DAY = np.datetime64("2001-01-01", "D")
_DAYS = 365
_MOST_UNITS = 99
_STEP = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


@dataclass(frozen=True)
class Generator:
    """Relations of one size and seed.

    Attributes:
        size: rows of TRAN, 1 or more.
        seed: seed of all random values.
        skew: exponent of the Zipf distribution of items in TRAN; 0 for a uniform one.
        items: rows of ITEM; default: a twentieth of ``size``.
        nulls: fraction of units and prices that are NULL.

    Raises:
        QueryError: an attribute is not valid.
    """

    size: int = PAPER_SIZE
    seed: int = 0
    skew: float = 1.3
    items: int | None = None
    nulls: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 1 or (self.items is not None and self.items < 1):
            least = self.size if self.size < 1 else self.items
            raise QueryError(f"a relation cannot be made of {least} rows; it has 1 or more")
        if not (self.skew >= 0 and 0 <= self.nulls <= 1):
            raise QueryError(
                f"the skew is {self.skew} and the fraction of NULLs {self.nulls}; the one is 0 or "
                f"more, the other 0 to 1"
            )

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each relation."""
        items = self.items or max(self.size // TRAN_PER_ITEM, 1)
        return {"ITEM": items, "QNT": math.isqrt(items), "TRAN": self.size}

    def relation(self, name: str, places: Places | None = None) -> Relation:
        """Return the rows of ITEM, QNT or TRAN at some positions; default: all rows."""
        makers: dict[str, Callable[[Places], Relation]] = {
            "ITEM": self._item,
            "QNT": self._qnt,
            "TRAN": self._tran,
        }
        return makers[name](np.arange(self.rows[name]) if places is None else places)

    def _tran(self, places: Places) -> Relation:
        rank = np.searchsorted(self._cumulated, self._draw(places, 0), "right")
        day = _FIRST_DAY + places * _DAYS // self.size
        units = 1 + (self._draw(places, 1) * _MOST_UNITS).astype(np.int32)
        return Relation(
            {
                "tran": Column(places),
                "item": Column(self._shuffled[rank].astype(np.int32)),
                "day": Column(day),
                "units": self._with_nulls(units, places, 2),
            }
        )

    def _item(self, places: Places) -> Relation:
        classes = (self._draw(places, 10) * self.rows["QNT"]).astype(CODE)
        since = _FIRST_DAY - (self._draw(places, 11) * 10 * _DAYS).astype(np.int64)
        return Relation(
            {
                "item": Column(places.astype(np.int32)),
                "name": Column(places.astype(CODE), None, _words("item", self.rows["ITEM"])),
                "class": Column(classes, None, self._classes),
                "price": self._with_nulls(_price(self._price_ranks[places]), places, 12),
                "since": Column(since),
            }
        )

    def _qnt(self, places: Places) -> Relation:
        items, classes = self.rows["ITEM"], self.rows["QNT"]
        exceeding = (self._draw(places, 20) * min(2 * items // classes, items)).astype(np.int64)
        return Relation(
            {
                "class": Column(places.astype(CODE), None, self._classes),
                "stock": Column((self._draw(places, 21) * 1000).astype(np.int32)),
                "floor": Column(_price(items - 1 - exceeding)),
            }
        )

    @cached_property
    def _cumulated(self) -> NDArray[np.float64]:
        """Probability of the first item of all, of the first two, ... but not of all."""
        weights = np.arange(1.0, self.rows["ITEM"] + 1) ** -self.skew
        cumulated: NDArray[np.float64] = np.cumsum(weights)
        cumulated /= cumulated[-1]
        return cumulated[:-1]

    @cached_property
    def _shuffled(self) -> Places:
        """Items in the order of their frequency."""
        return np.argsort(self._draw(np.arange(self.rows["ITEM"]), 30), kind="stable")

    @cached_property
    def _price_ranks(self) -> Places:
        """Rank of each item by price."""
        return np.argsort(self._draw(np.arange(self.rows["ITEM"]), 31), kind="stable")

    @cached_property
    def _classes(self) -> Words:
        return _words("class", self.rows["QNT"])

    def _draw(self, places: Places, stream: int) -> NDArray[np.float64]:
        """Return random numbers, at least 0 and less than 1, by place."""
        start = (self.seed * 1_000_003 + stream) * 0xD1342543DE82EF95 & _MASK
        mixed = places.astype(np.uint64) * np.uint64(_STEP) + np.uint64(start)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return np.asarray((mixed >> np.uint64(11)) * 2.0**-53, np.float64)

    def _with_nulls(self, values: NDArray[np.generic], places: Places, stream: int) -> Column:
        column = Column(values)
        return column.where(self._draw(places, stream) >= self.nulls) if self.nulls else column


def _price(rank: Places) -> NDArray[np.float64]:
    """Return a price that grows with the rank."""
    return 1 + rank / 100


def _words(what: str, count: int) -> Words:
    """Return names that are in the order of their numbers."""
    digits = len(str(count))
    return np.array([f"{what} {number:0{digits}}" for number in range(count)], object)
