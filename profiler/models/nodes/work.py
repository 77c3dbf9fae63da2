"""Computation of a call chain: a formula fitted to typical times, with a band.

The formula has up to three of the terms of :mod:`bsplib.profiler.models.terms`, which
:mod:`bsplib.profiler.models.select` chooses. The trials of all chains tell how far it may be off.

Half the time of a small run is what each process does once, such as to import modules and to touch
its memory. It hides how the computation grows. Imports were measured, and are a constant of the
law. Where a chain has several supersteps, what the first
of them take longer than the others is fitted alone. Where it has one only, its computation may seem
to be constant: then the terms by which the rest of the program grows, and by which the memory
grows that it gets from the system, are tried alone, and the band holds as much growth as noise may
hide.

Where data outgrow a cache, a computation jumps, as if it grew with a high power. So no part of a
program has a higher power than the differences of the whole allow, except that a large part may
grow with the square of a size. Beyond the runs a law goes on from the longest of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import numpy as np

from bsplib.profiler.models.band import CONFIDENCE, Reach, Trials, pooled, student, try_sum
from bsplib.profiler.models.borne import allows, power_beside_constant, terms_borne
from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Where
from bsplib.profiler.models.nodes.pages import (
    Paged,
    page_forms,
    page_seconds,
    page_share,
    slower_forms,
)
from bsplib.profiler.models.nodes.settle import more_values
from bsplib.profiler.models.nodes.spread import columns_of, forms_of
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.select import LEAST, Search, relative
from bsplib.profiler.models.terms import Term, library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

T = TypeVar("T")

USUAL_GROWTH = 1.0
"""Where the runs are too few for trials: how far the logarithm of a computation is off beyond them,
for each width of their range. So it was in 90% of 67 predictions of sorts and Fourier transforms
at most one width beyond four or five runs of real processes: memory and caches behave otherwise
there."""
REAL_GROWTH = 0.2
"""The least growth where real processes were timed, even if trials inside of the runs show less:
these cannot show what caches, memory and the prediction of branches do beyond them. With it the
bands held the time of six of eight programs at 8 times the largest size of their runs."""
REAL_NOISE = 0.1
"""Least error of the logarithm of a computation of real processes, also near the runs: the medians
of equal runs differ by this much from one hour to the next."""
_MOST_TERMS = 3
_ENOUGH = 6
"""Runs of several processes that are enough to be fitted without those of one process."""
_MUCH_BETTER, _SLIGHT = 2.0, 0.05
"""How much greater a misfit has to be, as a factor and beyond it, to tell one process apart."""
_POINTS_FOR_EACH_TERM = 3
"""Points that are needed for each term beyond the first."""
_CLEAR, _MOSTLY, _LEAST_PART = 0.1, 0.75, 1e-3
"""What first supersteps take longer is fitted alone where it is at least the first part of the
computation at the second part of the points; the third is its least part elsewhere."""
_LEAST_OF_GROWTH, _MOST_GROWING = 0.1, 2
"""Least part that a term has in the growth of a program to be its own, and how many it has."""
_FEWEST_PAGES, _BASE = 16, 0.1
"""Fewest pages whose growth is one of the data, and what is added to them, as a part of it."""
_NO_POWERS: Mapping[str, float | None] = {}
_LARGE = 0.25
"""Least part of the largest run of a computation that may grow with the square of a size although
the rest of the program, such as its start, hides this in the whole."""
_MOST_OTHERS = 4
"""How many other forms of each part of a sum are kept."""
_ALIKE = 0.5
"""Least ratio of the imports of one process and of several that are the same ones."""
_SIDES = tuple(Where(PROCESSES, 1.0, 2.0, above=above) for above in (True, False))
"""Several processes, and one alone."""


@dataclass(frozen=True)
class ChainWork:
    """The computation of a chain at each point."""

    TAKEN: ClassVar[tuple[str, ...]] = ("comp", "once", "pages", "once_pages", "imports")
    """The quantities of an observation that it has, in the order of its arguments."""
    seconds: Vector
    """Without imports."""
    once: Vector
    """The part of it by which the first supersteps are longer than the others; or 0."""
    pages: Vector
    """Pages of memory that the process with most got meanwhile; 0 where they were not counted."""
    once_pages: Vector
    """The part of them by which the first supersteps have more than the others; or 0."""
    imports: Vector
    """Seconds of imports, which are the same with little data and with much."""
    page_s: float = field(default=0.0, kw_only=True)
    """Seconds of a page, where they are fitted alone."""
    powers: Mapping[str, float | None] = field(default_factory=dict, kw_only=True)
    """The greatest power of each size with which it may grow: that of the whole program, as far as
    it is known, and of a large part of it at least 2."""

    def at(self, used: NDArray[np.bool_]) -> ChainWork:
        """Return it at some of the points."""
        columns = self.seconds, self.once, self.pages, self.once_pages, self.imports
        found = ChainWork(*(column[used] for column in columns))
        return replace(found, page_s=self.page_s, powers=self.powers)

    @property
    def paged(self) -> Vector:
        """Seconds that its pages take, where they are fitted alone; otherwise 0."""
        return page_share(Paged(self.seconds, self.pages), self.page_s)

    @property
    def parts(self) -> list[Vector]:
        """What is fitted alone: the whole, or what first supersteps take longer and the rest."""
        paged = self.paged
        page_s = float(paged.max() / self.pages.max()) if paged.any() else 0.0
        seconds, once = self.seconds - paged, self.once - page_s * self.once_pages
        clear = once >= _CLEAR * seconds
        rest = seconds - once
        if clear.mean() < _MOSTLY or not (rest > 0).all():
            return [seconds]
        once = np.maximum(once, _LEAST_PART * seconds)
        return [seconds - once, once]


class FittedWork(NamedTuple):
    """A law of computation, with the trials of its predictions."""

    law: Law
    trials: Trials
    hides: bool = False
    """Whether it is constant, and its other forms have the growth that noise may hide."""


def fit_works(
    works: Mapping[T, ChainWork], values: Values, varied: Values, least_growth: float = 0.0
) -> dict[T, Law]:
    """Fit the computation of each chain of a program.

    Args:
        works: computation at each point, by chain.
        values: the variables with p, one element for each point.
        varied: the variables that have several values.
        least_growth: of the bands beyond the runs, as :attr:`Reach.growth` counts; greater than 0
            where real processes were timed, so that a constant may hide growth.
    """
    if least_growth > 0:
        works = _paged(works, varied)
    found = {chain: _fit(values, work, varied) for chain, work in works.items()}
    if least_growth > 0:
        known = _growing([fit.law for fit in found.values() if isinstance(fit, FittedWork)], varied)
        found |= {
            chain: _fit(values, works[chain], varied, known)
            for chain, fit in found.items()
            if known and isinstance(fit, FittedWork)
        }
    tried = {chain: fit for chain, fit in found.items() if isinstance(fit, FittedWork)}
    reaches = pooled([fit.trials for fit in tried.values()])
    laws = {chain: law for chain, law in found.items() if isinstance(law, Law)} | {
        chain: replace(fit.law, reach=_beyond(fit, reach, least_growth))
        for (chain, fit), reach in zip(tried.items(), reaches, strict=True)
    }
    laws = {chain: _with_imports(laws[chain], values, work) for chain, work in works.items()}
    if least_growth > 0:
        laws = {chain: _from_largest(law, values, works[chain]) for chain, law in laws.items()}
    return laws


def _from_largest(law: Law, values: Values, work: ChainWork) -> Law:
    """Return a law that goes on from the longest computation with each number of processes.

    A form that fits all runs about equally well may be far off in this one, from which a prediction
    beyond the runs is least far.
    """
    seconds = work.seconds + work.imports
    found = []
    for p in np.unique(values[PROCESSES]) if law.kind == FITTED else ():
        place = int(np.where(values[PROCESSES] == p, seconds, -1).argmax())
        if work.seconds[place] > 0:
            point = {name: float(column[place]) for name, column in values.items()}
            found.append((point, float(seconds[place])))
    return replace(law, largest=tuple(found))


def _with_imports(law: Law, values: Values, work: ChainWork) -> Law:
    """Return the law of a computation with its imports, which do not depend on the sizes.

    A single process may import elsewhere than several do.
    """
    if not work.imports.any() or not law.pieces:
        return law
    used, is_alone = work.seconds > 0, values[PROCESSES] == 1
    several, alone = (
        float(np.median(work.imports[some])) if some.any() else None
        for some in (used & ~is_alone, used & is_alone)
    )
    if several is None or alone is None:
        several = alone = several or alone or 0.0
    elif min(several, alone) >= _ALIKE * max(several, alone):
        several = alone = float(np.median(work.imports[used]))
    pieces = law.pieces
    if several != alone and not pieces[0].where:
        pieces = tuple(replace(pieces[0], where=(side,)) for side in _SIDES)
    return replace(
        law,
        pieces=tuple(
            _longer(piece, several if not piece.where or piece.where[0].above else alone)
            for piece in pieces
        ),
    )


def _longer(piece: Piece, seconds: float) -> Piece:
    constant = Form((seconds,), ("1",), rounded=True, weight=1)
    return replace(piece, forms=tuple(form.plus(constant).joined() for form in piece.forms))


def _paged(works: Mapping[T, ChainWork], varied: Values) -> dict[T, ChainWork]:
    """Return the computations with the seconds of a page, as far as they tell them."""
    if not varied:
        return dict(works)
    terms = library(varied, PROCESSES, between=False)
    found = [Paged(work.seconds, work.pages) for work in works.values()]
    page_s = page_seconds(found, terms, varied)
    whole = np.sum([work.seconds for work in works.values()], axis=0)
    powers = {size: power_beside_constant(varied, whole, size) for size in varied}
    squares = {size: None if power is None else max(power, 2.0) for size, power in powers.items()}
    largest = int(whole.argmax())
    return {
        chain: replace(
            work,
            page_s=page_s,
            powers=squares if work.seconds[largest] > _LARGE * whole[largest] else powers,
        )
        for chain, work in works.items()
    }


def fit_work(values: Values, seconds: Vector, varied: Values) -> Law:
    """Fit the computation of a single chain; the arguments are those of :func:`fit_works`."""
    nothing = np.zeros(len(seconds))
    return fit_works({"": ChainWork(seconds, *[nothing] * 4)}, values, varied)[""]


def _growing(laws: Sequence[Law], varied: Values) -> list[Term]:
    """Return the terms by which most of the computation of a program grows with its sizes.

    Where no law grows, it is the part of a size that each process has.
    """
    grown = _main_growth([law.pieces[0].forms[0] for law in laws], varied)
    return _named(grown or _shares_of_sizes(varied), varied)


def _shares_of_sizes(varied: Values) -> list[str]:
    """Return the part of each size that a process has, as terms."""
    shared = "/p" if PROCESSES in varied else ""
    return [f"{size}{shared}" for size in sorted(set(varied) - {PROCESSES})]


def _growing_pages(pages: Vector, values: Values) -> list[Term]:
    """Return the terms by which the memory grows that processes get during a computation.

    Pages are counted, so that a growth that is hardly seen in time is clear in them.
    """
    grown = float(np.ptp(pages))
    if grown < _FEWEST_PAGES or not (pages > 0).all():
        return []
    beyond = pages - pages.min() + _BASE * grown  # most of the pages belong to the interpreter
    return _named(_main_growth(_forms(values, beyond, ())[:1], values), values)


def _named(texts: Sequence[str], values: Values) -> list[Term]:
    terms = {term.text: term for term in library(values, PROCESSES, between=False)}
    return [terms[text] for text in texts if text in terms]


def _main_growth(forms: Sequence[Form], varied: Values) -> list[str]:
    """Return the terms that have most of what grows with a size in a sum of forms."""
    sizes = set(varied) - {PROCESSES}
    there = {name: np.array([column.max()]) for name, column in varied.items()}
    parts: dict[str, float] = {}
    for whole in forms:
        form = whole.depending_on(sizes)
        for factor, term in zip(form.coefficients, form.terms, strict=True):
            part = replace(form, coefficients=(factor,), terms=(term,)).at(there)
            parts[term] = parts.get(term, 0.0) + float(part[0])
    least = _LEAST_OF_GROWTH * sum(parts.values())
    most = sorted((term for term in parts if parts[term] >= least), key=lambda term: -parts[term])
    return most[:_MOST_GROWING]


def _fit(
    values: Values, work: ChainWork, varied: Values, known: Sequence[Term] = ()
) -> FittedWork | Law:
    """Fit the computation of a chain, by the terms of which others are known to grow if any are."""
    if not work.seconds.any():
        return Law(EXACT, (Piece((ZERO,)),))
    used = work.seconds > 0
    if used.sum() < LEAST:
        return _of_few(values, work.seconds)
    inside = {name: array[used] for name, array in varied.items()}
    return _several_or_one(inside, work.at(used), known)


def _several_or_one(values: Values, work: ChainWork, known: Sequence[Term]) -> FittedWork:
    """Fit one formula, or another one for one process alone, which may compute other things."""
    whole = _fitted(values, work, known)
    several = values.get(PROCESSES, np.ones(1)) > 1
    if several.all() or several.sum() < _ENOUGH or not several.any():
        return whole
    part = _fitted(
        {name: column[several] for name, column in values.items()}, work.at(several), known
    )
    if part.trials.noise * _MUCH_BETTER + _SLIGHT > whole.trials.noise:
        return whole
    alone = {name: column[~several] for name, column in values.items() if name != PROCESSES}
    alone = {name: column for name, column in alone.items() if np.ptp(column) > 0}
    if len(several) - several.sum() < LEAST or not alone:
        middle = float(np.median(work.seconds[~several]))
        own: tuple[Piece, ...] = (Piece((Form((middle,), ("1",), rounded=True, weight=1),)),)
    else:
        own = _fitted(alone, work.at(~several), ()).law.pieces
    pieces = [
        replace(piece[0], where=(side,))
        for piece, side in zip((part.law.pieces, own), _SIDES, strict=True)
    ]
    return part._replace(law=replace(part.law, pieces=tuple(pieces)))


def _fitted(values: Values, work: ChainWork, known: Sequence[Term]) -> FittedWork:
    """Fit a formula to computation that is nowhere 0."""
    parts = work.parts
    if known:
        every = [*known, *_growing_pages(work.pages, values)]
        known = list({term.text: term for term in every}.values())
    found = [_forms(values, part, known, work.powers) for part in parts]
    paged = work.paged
    if paged.any():
        grown = _named(_main_growth(found[0][:1], values), values) or list(known)
        found.append(page_forms(values, paged, grown[:1]))
        parts = [*parts, paged]
    trials = try_sum(
        values,
        [
            (columns_of(forms[0], values, work.seconds), part / work.seconds)
            for forms, part in zip(found, parts, strict=True)
        ],
        np.zeros(len(work.seconds)),
    )
    forms = _sums(found)
    if known:
        proportional = _named(_shares_of_sizes(values), values)
        slower = slower_forms(values, Paged(work.seconds, work.pages), proportional)
        forms = (*forms, *slower)
    hides = bool(known) and len(forms) > 1 and any(set(form.terms) <= {"1"} for form in forms)
    return FittedWork(Law(FITTED, (Piece(forms),)), trials, hides)


def _sums(found: Sequence[tuple[Form, ...]]) -> tuple[Form, ...]:
    """Return the sum of the first forms of each part, and sums in which one part has another."""
    if len(found) == 1:
        return found[0]
    whole = [_sum([forms[0] for forms in found])]
    for forms in found:
        whole += [
            _sum([form if each is forms else each[0] for each in found])
            for form in forms[1:][-_MOST_OTHERS:]
        ]
    return tuple(whole)


def _sum(forms: Sequence[Form]) -> Form:
    whole, *others = forms
    for form in others:
        whole = whole.plus(form)
    return whole.joined()


def _forms(
    values: Values,
    seconds: Vector,
    known: Sequence[Term],
    powers: Mapping[str, float | None] = _NO_POWERS,
) -> tuple[Form, ...]:
    """Return the form that fits best, and others that the runs hardly tell from it."""
    terms = library(values, PROCESSES, between=False)
    rows = relative(terms, values, seconds, rounded=True)
    most = terms_borne(rows, min(_MOST_TERMS, 1 + (len(seconds) - 1) // _POINTS_FOR_EACH_TERM))
    usable = supported(terms, values, seconds, powers) if most > 1 else terms[:1]
    forms = forms_of(Search(usable, values, seconds, most, rounded=True).choice())
    if most == 1:
        return _beside_constant(forms, values, seconds, known)
    left = 1 - forms[0].at(values) / seconds
    faster = [place for place, term in enumerate(terms) if term not in usable]
    return (*forms, *_as_likely(terms, rows, faster, float(left @ left)))


def _as_likely(
    terms: Sequence[Term], rows: NDArray[np.float64], faster: Sequence[int], least: float
) -> list[Form]:
    """Return forms of a constant and a faster term that fit all runs about as well as the best one.

    Noise may make the largest runs look more alike than they are. So the growth between the largest
    runs decides which form gives the value of a prediction, but these forms widen its band.

    Args:
        terms: the constant, and all others.
        rows: the terms, a row for each point, divided by what was measured; more than two points,
            as for all forms with more than one term.
        faster: places of the terms that grow faster than the largest runs do.
        least: sum of the squared errors of the best form.

    Returns:
        The most likely one, and the one that grows most over the runs; or nothing.
    """
    freedom = len(rows) - 2
    found = {}
    for place in faster:
        pair = rows[:, [0, place]]
        factors, *_ = np.linalg.lstsq(pair, np.ones(len(rows)), rcond=None)
        left = 1 - pair @ factors
        if (factors > 0).all():
            found[place] = float(left @ left), factors
    best = min([least, *(error for error, _ in found.values())])
    most = best * (1 + student(freedom, CONFIDENCE) ** 2 / freedom)
    likely = [place for place, (error, _) in found.items() if error <= most]
    if not likely:
        return []
    columns = {place: rows[:, place] / rows[:, 0] for place in likely}
    grown = {place: column.max() / column.mean() for place, column in columns.items()}
    kept = {min(likely, key=lambda place: found[place][0]), max(likely, key=grown.__getitem__)}
    return [
        Form(tuple(found[place][1].tolist()), ("1", terms[place].text), rounded=True, weight=2)
        for place in sorted(kept)
    ]


def _beside_constant(
    forms: tuple[Form, ...], values: Values, seconds: Vector, known: Sequence[Term]
) -> tuple[Form, ...]:
    """Return the forms of what is constant as far as any of all terms could tell.

    Few terms need less growth to be told from noise than many: so those are tried alone by which
    the rest of the program grows. Where the noise hides even these, they grow as much as it lets
    them in other forms, which the band of a prediction holds.
    """
    constant, *_ = library(values, PROCESSES, between=False)
    few = [constant, *known]
    rows = relative(few, values, seconds, rounded=True)
    if known and terms_borne(rows, 2) > 1:
        return forms_of(Search(few, values, seconds, 2, rounded=True).choice())
    hidden = [_hidden(rows[:, [0, place]], few[place].text) for place in range(1, len(few))]
    likely = [some[0] for some in hidden if len(some) > 1][:1]
    return (*likely, *forms, *(some[-1] for some in hidden if some))


def _hidden(rows: NDArray[np.float64], term: str) -> tuple[Form, ...]:
    """Return a constant with the greatest part of a term beside it that noise may hide.

    Before it comes the likeliest part, if there is one.

    Args:
        rows: the constant and the term, divided by what was measured.
        term: its text.
    """
    freedom = len(rows) - 2
    if freedom < 1 or np.linalg.matrix_rank(rows) < rows.shape[1]:
        return ()
    inverse = np.linalg.inv(rows.T @ rows)
    found = inverse @ rows.sum(axis=0)
    left = 1 - rows @ found
    deviation = math.sqrt(float(left @ left) / freedom * inverse[1, 1])
    likely = max(float(found[1]), 0.0)
    most = likely + student(freedom, CONFIDENCE) * deviation
    return tuple(_beside(rows, term, factor) for factor in (likely, most) if factor)


def _beside(rows: NDArray[np.float64], term: str, factor: float) -> Form:
    """Return a part of a term with the constant that fits best beside it."""
    rest = 1 - factor * rows[:, 1]
    constant = max(float(rows[:, 0] @ rest / (rows[:, 0] @ rows[:, 0])), 0.0)
    return Form((constant, factor), ("1", term), rounded=True, weight=2)


def _beyond(fit: FittedWork, reach: Reach, least_growth: float) -> Reach:
    """Return how far a law may be off beyond the runs.

    Where its other forms say how it grows, the errors of other laws do not count again.
    """
    if fit.hides:
        reach = replace(reach, growth=0.0, factor=reach.factor or 1.0, calibrated=True)
    elif not reach.calibrated:
        reach = replace(reach, growth=USUAL_GROWTH, factor=1.0)
    if not least_growth:
        return reach
    growth = max(reach.growth, least_growth / reach.factor)
    return replace(reach, least=max(reach.least, REAL_NOISE), growth=growth)


def supported(
    terms: Sequence[Term],
    values: Values,
    seconds: Vector,
    powers: Mapping[str, float | None] = _NO_POWERS,
) -> list[Term]:
    """Return the terms whose growth the differences between the largest runs allow.

    A short computation jumps where its data outgrow a cache, and so seems to grow with a high
    power. So it may not grow faster than the whole program.

    Args:
        terms: the terms.
        values: the variables that vary.
        seconds: computation at each point; greater than 0.
        powers: the greatest power of each size with which it may grow, as far as it is known.
    """
    kept = list(terms)
    for size in values:
        growth = Growth(values, seconds, size)
        power = power_beside_constant(values, seconds, size)
        whole = powers.get(size)
        if power is not None and whole is not None:
            power = min(power, whole)
        kept = [
            term for term in kept if allows(power, growth.of(term.column(values, rounded=True)))
        ]
    return kept


def _of_few(values: Values, seconds: Vector) -> Law:
    """Return the law of a chain that computes in few runs."""
    if len({*zip(*(array.tolist() for array in values.values()), strict=True)}) == 1:
        form = Form((float(seconds.mean()),), ("1",), rounded=True, weight=1)
        return Law(FITTED, (Piece((form,)),), Reach(calibrated=False))
    points = int((seconds > 0).sum())
    why = f"{points} different runs are too few to fit a formula; {LEAST} are needed"
    return Law(REFUSED, (), why=why, settle=more_values(values, seconds))
