"""The laws of a program's call chains, learnt from a handful of small runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.nodes.collectives import CollectiveCosts, forms_of
from bsplib.profiler.models.nodes.exact import ExactSearch, columns_of
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Where
from bsplib.profiler.models.nodes.observed import Chain, Observation, Quantities
from bsplib.profiler.models.nodes.parts import (
    ALL,
    ONE_ROOT,
    OTHERS,
    PAIRS,
    RecordedParts,
    forms_of_parts,
    fractions_of,
)
from bsplib.profiler.models.nodes.regimes import divide, quantities
from bsplib.profiler.models.nodes.settle import at_a_bound, between_forms, depends, more_values
from bsplib.profiler.models.nodes.spread import Shares, added_terms, fit_shares, fit_spread
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.nodes.work import ChainWork, fit_works
from bsplib.profiler.models.terms import are_powers_of_two, counted_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_MOST_OFF = 0.1
"""A form for data is refused if it is off by more, in the mean over trials."""
_FAR = (0.5, 2.0, 4.0, 16.0)
_WHOLE = 1e-6
_FEW_TERMS = 1
_AS_SIMPLE = 2
"""Greatest difference of the weights of the simplest form and of another possibility."""
_LEAST_PART, _MOST_FORMS = 0.1, 3
"""Of the computation that grows most with the sizes, a computation that tells how memory may grow
has at least this part; and how many forms are kept."""
PAGE = 4096
"""Bytes of memory that the system gives a process at once, except for huge pages."""


class Points:
    """The observations by point: the same variables, and different seeds."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        names = list(observations[0].values)
        self._by_point: dict[tuple[float, ...], list[Observation]] = {}
        for each in observations:
            point = tuple(each.values[name] for name in names)
            self._by_point.setdefault(point, []).append(each)
        columns = np.array(list(self._by_point), float).T
        self.values: dict[str, Vector] = dict(zip(names, columns, strict=True))
        self.varied: dict[str, Vector] = {
            name: column for name, column in self.values.items() if np.ptp(column) > 0
        }

    def of(self, take: Callable[[Observation], float]) -> tuple[Vector, Vector]:
        """Return the mean of a quantity at each point, and its relative deviation."""
        rows = [np.array([take(each) for each in found]) for found in self._by_point.values()]
        means = np.array([row.mean() for row in rows])
        deviations = np.array([row.std(ddof=1) if len(row) > 1 else 0.0 for row in rows])
        return means, deviations / np.where(means > 0, means, 1)

    def moved(self, chain: Chain) -> list[NDArray[np.float64] | None]:
        """Return what each process sends and receives in a superstep of a chain at each point."""
        found = []
        for observations in self._by_point.values():
            first, *others = [each.moved.get(chain) for each in observations]
            same = first is not None and all(
                other is not None and np.array_equal(first, other) for other in others
            )
            found.append(first if same else None)
        return found

    def most_pages(self) -> float:
        """Return how many pages more a process got in a run than in the least with as many of them.

        Returns:
            The greatest difference; 0 where pages were not counted.
        """
        counts = self.of(lambda each: math.nan if each.pages is None else each.pages)[0]
        if not (counts > 0).all():  # nan is not
            return 0.0
        several = self.values[PROCESSES]
        return max(float(np.ptp(counts[several == p])) for p in np.unique(several))

    @property
    def seeds(self) -> int:
        """Number of seeds at the point that has most."""
        return max(len(found) for found in self._by_point.values())


class Learner:
    """Learns the laws of quantities at some points."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._varied = points.varied
        self._sizes = [name for name in self._varied if name != PROCESSES]
        self._with_processes = PROCESSES in self._varied
        self._terms = counted_terms(self._sizes, with_processes=self._with_processes)
        self.powers_of_two = are_powers_of_two(points.values[PROCESSES])
        self._inside: dict[bytes, ExactSearch] = {}

    def laws(
        self,
        takes: Sequence[Callable[[Observation], float]],
        *,
        whole: Sequence[bool],
        steps: Sequence[Callable[[Observation], float]],
        shares: Sequence[Sequence[Callable[[Observation], float]]],
    ) -> list[Law]:
        """Return the law of each of some quantities that are counted: supersteps, bytes.

        Args:
            takes: take a quantity from an observation.
            steps: take the supersteps of its chain.
            shares: take what a process contributes to it, mean and standard deviation.
            whole: whether it is a count of supersteps, which has an exact form unless it
                depends on the data.
        """
        rows = [self._points.of(take) for take in takes]
        settled = [place for place, (_, deviation) in enumerate(rows) if not deviation.any()]
        found = self._find([rows[place][0] for place in settled])
        forms = {
            place: self._in_stages(some, steps[place])
            for place, some in zip(settled, found, strict=True)
        }
        others = [place for place in range(len(rows)) if _is_doubtful(forms.get(place, ()))]
        pieces = dict(zip(others, self._divide([rows[place] for place in others]), strict=True))
        return [
            self._divided(pieces[place])
            if _is_simpler(pieces.get(place, ()), forms.get(place, ()))
            else self._exact(forms[place], whole=whole[place])
            if forms.get(place)
            else self._other(means, deviations, shares[place], whole=whole[place])
            for place, (means, deviations) in enumerate(rows)
        ]

    def _in_stages(self, forms: list[Form], steps: Callable[[Observation], float]) -> list[Form]:
        """Leave out exchanges on a grid where the supersteps depend on p: a grid has one stage."""
        if len(forms) < 2 or PROCESSES not in self._varied:
            return forms
        if not depends(self._points.values, self._points.of(steps)[0], PROCESSES):
            return forms
        return [form for form in forms if "grid_rows(" not in form.text] or forms

    def _divide(self, rows: Sequence[tuple[Vector, Vector]]) -> list[tuple[Piece, ...]]:
        """Return the pieces of quantities that have no single exact form."""
        if not rows:
            return []
        return divide(
            self._varied,
            np.stack([means for means, _ in rows]),
            np.stack([deviations > 0 for _, deviations in rows]),
            quantities(self._sizes, with_processes=self._with_processes),
            self._search_at,
        )

    def collective(
        self, kind: str, takes: Sequence[Callable[[Observation], float]], ratio: float
    ) -> dict[str, Law]:
        """Return the laws of supersteps and h of a collective; none if its formula is not met.

        Args:
            kind: its cost function, of :func:`bsplib.profiler.models.nodes.collectives.kinds_of`.
            takes: take supersteps, h, the mean of what a process sends, and h by the rule ``sum``.
            ratio: l / g of the Machine of the runs, in bytes.
        """
        rows = [self._points.of(take) for take in takes]
        if any(deviation.any() for _, deviation in rows[:2]):
            return {}
        supersteps, h, share, h_sum = (means for means, _ in rows)
        observed = CollectiveCosts(supersteps, h, share * self._points.values[PROCESSES])
        found = forms_of(kind, self._with_p, observed, ratio, self._find_one)
        if not found[0]:
            return {}
        laws = self._laws_of_h(found[1], h, h_sum)
        return laws | {"supersteps": self._exact(found[0], whole=True)}

    def divided(
        self, kind: str, chain: Chain, takes: Sequence[Callable[[Observation], float]]
    ) -> dict[str, Law]:
        """Return the laws of h of a collective that moves the parts of all; none if nothing fits.

        Args:
            kind: of :func:`bsplib.profiler.models.nodes.parts.parts_of`.
            chain: of the collective.
            takes: take supersteps, h, the mean of what a process sends, its standard deviation, and
                h by the rule ``sum``.
        """
        rows = [self._points.of(take) for take in takes]
        (supersteps, doubt), (h, deviations), (share, _), (deviation, _), (h_sum, _) = rows
        if not deviations.any() and not doubt.any():
            parts = RecordedParts(supersteps, h, self._points.moved(chain))
            forms = forms_of_parts(kind, self._with_p, parts, self._find_one)
            if forms:
                return self._laws_of_h(forms, h, h_sum)
            if self._find([h])[0]:
                return {}
        law = self._of_parts(kind, h, deviations, Shares(share, deviation, self._points.seeds))
        return {} if law is None else self._times(law, h, h_sum)

    def _laws_of_h(self, forms: Sequence[Form], h: Vector, h_sum: Vector) -> dict[str, Law]:
        """Return the exact law of h, and that by the rule ``sum`` where it follows from it."""
        return self._times(self._exact(forms, whole=False), h, h_sum)

    def _times(self, law: Law, h: Vector, h_sum: Vector) -> dict[str, Law]:
        for factor in (1, 2):  # one process sends or receives alone, or each does both alike
            if np.array_equal(h_sum, factor * h):
                return {"h": law, "h_sum": law.times(factor)}
        return {"h": law}

    @functools.cached_property
    def _with_p(self) -> dict[str, Vector]:
        """The variables with several values, and p."""
        return {**self._varied, PROCESSES: self._points.values[PROCESSES]}

    def _find_one(self, mask: NDArray[np.bool_], row: Vector) -> list[Form]:
        return self._find([row], mask)[0]

    def _find(
        self, rows: Sequence[Vector], mask: NDArray[np.bool_] | None = None
    ) -> list[list[Form]]:
        """Return the exact forms of some quantities, each with its values at the points."""
        if not rows:
            return []
        if not self._varied or not np.ptp(np.stack(rows), axis=1).any():
            return [[_constant(row)] for row in rows]
        everywhere = np.ones(len(self._points.values[PROCESSES]), bool)
        return self._search_at(everywhere if mask is None else mask).find(np.stack(rows))

    def _exact(self, forms: Sequence[Form], *, whole: bool) -> Law:
        if whole:  # nobody makes half a superstep
            forms = [form for form in forms if self._is_whole(form)] or forms
        apart = self._apart(forms)
        if len(apart) == 1:
            return Law(EXACT, (Piece(tuple(apart)),))
        settle = between_forms(apart, self._varied)
        why = f"the runs do not tell {' from '.join(form.text for form in apart)}"
        return Law(EXACT, (Piece(tuple(apart)),), why=why, settle=settle)

    def _is_whole(self, form: Form) -> bool:
        found = form.at(self._beyond)
        return not self.powers_of_two or bool((np.abs(found - np.round(found)) < _WHOLE).all())

    def _apart(self, forms: Sequence[Form]) -> list[Form]:
        """Return the simplest form, and others that predict something else."""
        first = forms[0]
        far = self._beyond
        here = first.at(far)
        found = [first]
        for form in forms[1:]:
            if _is_of_elements(form) and not _is_of_elements(first):
                continue  # what rounding makes of the first form is in its band
            there = form.at(far)
            if form.weight <= first.weight + _AS_SIMPLE and not np.allclose(here, there, rtol=1e-9):
                found.append(form)
        return found[:3]

    def _other(
        self,
        means: Vector,
        deviations: Vector,
        shares: Sequence[Callable[[Observation], float]],
        *,
        whole: bool,
    ) -> Law:
        """Return the law of what has no exact form."""
        if whole and not deviations.any():
            settle = more_values(self._points.values, means)
            return Law(REFUSED, (), why=_NO_FORM, settle=settle)
        mean, deviation = (self._points.of(take)[0] for take in shares)
        return self._of_data(means, deviations, Shares(mean, deviation, self._points.seeds))

    def _search_at(self, mask: NDArray[np.bool_]) -> ExactSearch:
        """Return the search at some of the points."""
        key = mask.tobytes()
        if key not in self._inside:
            inside = {name: column[mask] for name, column in self._varied.items()}
            self._inside[key] = ExactSearch(
                self._terms, inside, self._columns[:, mask], rounded=True
            )
        return self._inside[key]

    @functools.cached_property
    def _beyond(self) -> dict[str, Vector]:
        """Points beyond the runs, with the number of processes also where it is always the same."""
        far = _far(self._varied)
        count = max((len(column) for column in far.values()), default=1)
        return {PROCESSES: np.full(count, self._points.values[PROCESSES][0]), **far}

    @functools.cached_property
    def _columns(self) -> NDArray[np.float64]:
        return columns_of(self._terms, self._varied, rounded=True)

    def _divided(self, pieces: Sequence[Piece]) -> Law:
        sound = tuple(Piece(tuple(self._apart(piece.forms)), piece.where) for piece in pieces)
        settle = at_a_bound(sound[0].where, self._varied)
        return Law(EXACT, sound, why="the bound is not known more exactly", settle=settle)

    def _of_parts(self, kind: str, h: Vector, deviations: Vector, shares: Shares) -> Law | None:
        """Return the law of parts whose sizes depend on data: a fraction of what they are part of.

        How many parts a process moves is known.
        """
        several = self._points.values[PROCESSES] > 1
        if not several.any() or h[~several].any() or not h[several].all():
            return None
        inside = {name: array[several] for name, array in self._varied.items()}
        terms, added = fractions_of(kind, self._sizes)
        others = self._points.values[PROCESSES][several] - 1 if kind == ALL else 1.0
        mean, deviation = (side[several] / others for side in shares[:2])
        rows = inside, h[several] / others, deviations[several]
        named = kind == PAIRS
        spread = None
        if kind != ONE_ROOT:
            divided = Shares(mean, deviation, shares.seeds)
            spread = fit_shares(*rows, divided, terms, added, named=named)
        spread = spread or fit_spread(*rows, terms, added, named=named)
        if spread is None:
            return None
        forms = [spread.form, *spread.rivals]
        if kind == ALL:
            forms = [OTHERS.by(form) for form in forms]
        why = "" if deviations.any() else _NO_SEEDS
        pieces = _beside_zeros(Piece(tuple(forms)), several, self._varied)
        return Law(FITTED, pieces, spread.reach, why) if pieces else None

    def _of_data(self, means: Vector, deviations: Vector, shares: Shares) -> Law:
        used = means > 0
        depends = bool(deviations.any())
        inside = {name: array[used] for name, array in self._varied.items()}
        added = added_terms(self._sizes, with_processes=self._with_processes)
        rows = means[used], deviations[used]
        divided = Shares(shares.means[used], shares.deviations[used], shares.seeds)
        spread = fit_shares(inside, *rows, divided, self._terms, added)
        if spread is None:
            spread = fit_spread(inside, *rows, self._terms, added)
        if spread is not None and spread.score <= _MOST_OFF:
            pieces = _beside_zeros(Piece((spread.form, *spread.rivals)), used, self._varied)
            if pieces:
                why = "" if depends else _NO_SEEDS
                return Law(FITTED, pieces, spread.reach, why)
        settle = more_values(self._points.values, means)
        why = _NO_FORM if shares.seeds > 1 else f"{_NO_FORM}; {_OTHER_SEEDS}"
        if depends:
            why = "it depends on the data in a way that the forms do not follow"
        return Law(REFUSED, (), why=why, settle=settle)


def _is_of_elements(form: Form) -> bool:
    """Whether a form differs from one without whole elements by rounding alone."""
    return ("ceil(" in form.text or "floor(" in form.text) and "grid_rows" not in form.text


def _beside_zeros(piece: Piece, used: NDArray[np.bool_], values: Values) -> tuple[Piece, ...]:
    """Return the pieces of a law of which some runs have the value 0.

    One process alone sends nothing to others. So where all runs of one process have 0, and no other
    runs have, 0 becomes a piece of its own. Any other zeros are not explained: then there is no
    piece, and no law.

    Args:
        piece: what was fitted to the runs that do not have 0.
        used: which runs these are.
        values: the variables, one element for each run.
    """
    if used.all():
        return (piece,)
    if not np.array_equal(used, values.get(PROCESSES, np.ones(len(used))) > 1):
        return ()
    several, alone = (Where(PROCESSES, 1.0, 2.0, above=above) for above in (True, False))
    return replace(piece, where=(several,)), Piece((ZERO,), (alone,))


def _is_doubtful(forms: Sequence[Form]) -> bool:
    """Whether pieces may be simpler: some sum of many terms gives nearly any few values."""
    return not forms or len(forms[0].terms) > _FEW_TERMS


def _is_simpler(pieces: Sequence[Piece], forms: Sequence[Form]) -> bool:
    """Whether two forms, each on its side of a bound, are simpler than one for all runs."""
    if not pieces:
        return False
    return not forms or sum(piece.forms[0].weight for piece in pieces) < forms[0].weight


_NO_FORM = "no form that the runs could test gives all of them"
_OTHER_SEEDS = "if they depend on the data, runs with other seeds would show it"
_NO_SEEDS = "fitted, not exact: runs with other seeds would tell whether it depends on the data"


def learn_work(
    points: Points,
    takes: Mapping[Chain, Sequence[Callable[[Observation], float]]],
    least_growth: float,
) -> dict[Chain, Law]:
    """Return the law of the computation of each chain.

    Args:
        points: the runs.
        takes: take the quantities ``ChainWork.TAKEN`` of each chain.
        least_growth: as of :func:`fit_works`.
    """
    works = {
        chain: ChainWork(*(points.of(take)[0] for take in both)) for chain, both in takes.items()
    }
    return fit_works(works, points.values, points.varied, least_growth)


def learn_memory(points: Points, works: Iterable[Law]) -> Law | None:
    """Return how the bytes may grow that the process with most uses because of the sizes.

    What processes got from the system in the runs is known. Small runs do not tell how it grows,
    since most of it belongs to the interpreter. Whatever a process puts into memory takes it time:
    so each form of a computation that is a part of the run is possible.

    Args:
        points: the runs.
        works: the laws of the computation of all chains.

    Returns:
        The forms that grow most; None where pages were not counted, or nothing grows with a size.
    """
    used = PAGE * points.most_pages()
    sizes = set(points.varied) - {PROCESSES}
    grown = [
        form.depending_on(sizes) for law in works for piece in law.pieces for form in piece.forms
    ]
    most = {form: float(form.at(points.values).max()) for form in grown if form.terms}
    least = _LEAST_PART * max(most.values(), default=0.0)
    far = {name: _FAR[-1] * column.max() for name, column in points.values.items()}
    there = {name: np.array([value]) for name, value in far.items()}
    forms = [form.times(used / top) for form, top in most.items() if top >= least > 0]
    forms.sort(key=lambda form: float(form.at(there)[0]), reverse=True)
    return Law(FITTED, (Piece(tuple(forms[:_MOST_FORMS])),)) if used > 0 and forms else None


def taking(chain: Chain, quantity: str, *, booked: bool) -> Callable[[Observation], float]:
    """Return a function that takes a quantity of a chain from an observation."""
    place = Quantities._fields.index(quantity)
    nothing = Quantities(*[0.0] * len(Quantities._fields))

    def take(each: Observation) -> float:
        found = each.booked if booked else each.seen
        return float(found.get(chain, nothing)[place])

    return take


def _constant(row: Vector) -> Form:
    value = Fraction(float(row[0])).limit_denominator(10**6)
    return Form((value,), ("1",), rounded=True, weight=1) if value else Form((), (), rounded=True)


def _far(values: Values) -> dict[str, Vector]:
    """Return points beyond the runs, in all directions."""
    grids = np.meshgrid(
        *([array.max() * factor for factor in _FAR] for array in values.values()), indexing="ij"
    )
    return {name: grid.ravel() for name, grid in zip(values, grids, strict=True)}
