"""The laws of what is counted, supersteps and bytes of h-relations: found exactly, or not at all.

A law is a sum of at most three terms of a BSP program: a growth of the sizes, times a function of
p, or the elements of a block; where there is none, of two with a part of a size that is rounded.
Its coefficients are fractions, and it gives every value of the runs to the digit. In each variable
that it uses the runs have more values than the law has functions of this variable, and three at
least: fewer values are met by too many laws. Where no sum holds for all runs there may be a branch:
then the runs show both sides.

Several laws may hold for all runs. They are all kept; where they differ, nobody knows more.

Source: the costs of the primitives and collectives, Jarvis et al. 2002, sections 2 and 3.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.profiler.predict.terms import column
from bsplib.profiler.predict.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_PARTS = 960
"""Coefficients are whole multiples of 1/960: halves of halves and so on, thirds and fifths."""
EXACT = 1e-9
LEAST_VALUES = 3
"""Of a variable on which a law depends: two values are met by a law of any term."""
_SIMPLE = 3
"""Sums of three terms are only tried of terms of at most this weight."""
_BARE = 2
"""Weight of a law that is one simple function of p or a size, times a whole number or a half."""
_AS_SIMPLE = 1
"""How much heavier a law may be than the simplest one that is kept beside it."""


class CountedTerm(NamedTuple):
    """A term of a law."""

    text: str
    weight: int
    """How complicated it is; a constant has 0."""
    parts: tuple[str, str]
    """Its function of the sizes, and that of p."""


class Law(NamedTuple):
    """A closed form that holds for all runs."""

    text: str
    """In the syntax of :mod:`bsplib.experiments.formula`."""
    weight: int
    terms: int = 1
    """Of how many terms it is the sum, on the side of the larger runs."""

    def at(self, point: Mapping[str, float]) -> float:
        """Return the value at a point."""
        values = {name: np.array([float(value)]) for name, value in point.items()}
        return float(column(self.text, values)[0])


class _Sample(NamedTuple):
    """Values at points, each of which occurs once."""

    values: dict[str, Vector]
    counts: Vector

    def part(self, chosen: NDArray[np.bool_]) -> _Sample:
        return _Sample(
            {name: array[chosen] for name, array in self.values.items()}, self.counts[chosen]
        )


def laws_of(values: Values, counts: Vector, *, inside: bool = False) -> tuple[Law, ...]:
    """Return the laws that give all values, the simplest first; none if there is none.

    Args:
        values: the variables, one element for each run.
        counts: what was counted.
        inside: whether it is counted in sub-groups, which may be the rows or columns of a grid:
            then a law of these needs no other beside it, also where the runs have few grids.
    """
    key = tuple((name, tuple(array.tolist())) for name, array in values.items())
    return _laws_of(key, tuple(counts.tolist()), inside)


@functools.lru_cache(maxsize=4096)  # many cost centres have the same counts
def _laws_of(
    named: tuple[tuple[str, tuple[float, ...]], ...], counts: tuple[float, ...], inside: bool
) -> tuple[Law, ...]:
    sample = _once({name: np.array(array) for name, array in named}, np.array(counts))
    if sample is None:
        return ()
    found = _plain(sample)
    if not found or found[0].weight > _SIMPLE:
        found = sorted([*found, *_branches(sample)], key=_weight)
    if not found and not inside:
        return ()
    # A function of a grid that has few shapes in the runs is no law alone, but rivals others: the
    # rows of a grid, which are 1, 2 and 2, do so to a branch from p = 4 on.
    rivals = _sums(sample, most=1, grids=True)
    most = found[0].weight + _AS_SIMPLE if found else 0
    kept = [law for law in found if law.weight <= most]
    kept += [law for law in rivals if inside or law.weight <= most]
    return tuple(dict.fromkeys(each for law in kept for each in _whole_roots(law, sample)))


def _weight(law: Law) -> int:
    return law.weight


def _whole_roots(law: Law, sample: _Sample) -> Iterator[Law]:
    """Yield a law with the whole numbers beside each root of a size: a program has one of them.

    Where all sizes of the runs are squares, they do not tell which.
    """
    texts = [law.text]
    for root in (f"sqrt({name})" for name in sample.values if name != PROCESSES):
        if root in law.text and f"({root})" not in law.text:  # it is not yet rounded
            texts = [text.replace(root, f"{way}({root})") for text in texts for way in _WAYS]
    for text in texts:
        yield law._replace(text=text)


def _once(values: dict[str, Vector], counts: Vector) -> _Sample | None:
    """Return each point once; None if a point has two values, which then depend on the data."""
    points = np.stack([*values.values()])
    distinct, which = np.unique(points, axis=1, return_inverse=True)
    first = np.full(distinct.shape[1], np.nan)
    for place, count in zip(which.ravel().tolist(), counts.tolist(), strict=True):
        if not math.isnan(first[place]) and first[place] != count:
            return None
        first[place] = count
    return _Sample(dict(zip(values, distinct, strict=True)), first)


# -- sums of terms ----------------------------------------------------------------------------


def _plain(sample: _Sample, most: int = 3, *, least: int = LEAST_VALUES) -> list[Law]:
    """Return the laws without a branch; a part of a size is rounded only where there is no other.

    Where two values of a variable are enough, so are two shapes of a grid.
    """
    grids = least < LEAST_VALUES
    return _sums(sample, most, grids=grids, least=least) or _sums(
        sample, min(most, 2), grids=grids, rounded=True, least=least
    )


def _sums(
    sample: _Sample,
    most: int = 3,
    *,
    grids: bool = False,
    rounded: bool = False,
    least: int = LEAST_VALUES,
) -> list[Law]:
    """Return the sums of the least number of terms that give all values, by weight.

    Args:
        sample: the values.
        most: greatest number of terms.
        grids: terms of grids need not show three values of their function.
        rounded: of the growths of a size, take itself and those that round it.
        least: how many values a variable has to have on which the values depend.
    """
    counts = sample.counts
    if (counts == counts[0]).all():
        return [Law(f"{counts[0]:.17g}", 0)]
    if (counts == np.median(counts)).sum() >= max(len(counts) - 1, 3):
        return []  # a single run is no evidence of a term
    used = _used(sample)
    if any(len(set(sample.values[name].tolist())) < least for name in used):
        return []
    sizes = [name for name in used if name != PROCESSES]
    growths = _rounded(sizes, sample.values) if rounded else _growths(sizes)
    if not growths:
        return []
    terms, columns = _columns(used, sample.values, growths)
    for count in range(1, min(most, len(counts) - 1) + 1):
        limit = _SIMPLE if count == 3 else 99
        chosen = [place for place, term in enumerate(terms) if term.weight <= limit]
        subsets = np.array([*itertools.combinations(chosen, count)], np.intp)
        found = [*_exact(subsets.reshape(-1, count), terms, columns, sample, grids=grids)]
        if found:
            return sorted(found, key=_weight)
    return []


def depends_on(values: Values, counts: Vector) -> list[str]:
    """Return the variables on which values depend; all that vary if they depend on the data."""
    sample = _once(dict(values), counts)
    if sample is None:
        return [name for name, array in values.items() if np.ptp(array) > 0]
    return _used(sample)


def _used(sample: _Sample) -> list[str]:
    """Return the variables on which the values depend.

    One does not matter if the values are the same wherever only this one differs; unless no two
    points differ in this one alone.
    """
    varied = [name for name, array in sample.values.items() if np.ptp(array) > 0]
    used = []
    for name in varied:
        others = [sample.values[other].tolist() for other in varied if other != name]
        groups: dict[tuple[float, ...], set[float]] = {}
        keys = zip(*others, strict=True) if others else [()] * len(sample.counts)
        for key, count in zip(keys, sample.counts.tolist(), strict=True):
            groups.setdefault(tuple(key), set()).add(count)
        apart = len(groups) == len(sample.counts)
        if apart or any(len(group) > 1 for group in groups.values()):
            used.append(name)
    return used or varied  # at most one run differs from the others in any of them


def _exact(
    subsets: NDArray[np.intp],
    terms: Sequence[CountedTerm],
    columns: Vector,
    sample: _Sample,
    *,
    grids: bool,
) -> Iterator[Law]:
    """Yield the subsets of terms of which a sum gives all values."""
    norm = np.linalg.norm(columns, axis=0)
    scaled = columns / norm
    shown = functools.cache(functools.partial(_shown, sample))  # thousands of terms, few functions
    products, wanted = scaled.T @ scaled, scaled.T @ sample.counts
    for start in range(0, len(subsets), 20_000):  # some megabytes at once
        some = subsets[start : start + 20_000]
        matrix = products[some[:, :, None], some[:, None, :]]
        determinant = np.linalg.det(matrix)
        some, matrix = some[determinant > 1e-12], matrix[determinant > 1e-12]
        if not len(some):
            continue
        found = np.linalg.solve(matrix, wanted[some][..., None])[..., 0]
        left = np.einsum("mk,nmk->nm", found, scaled[:, some]) - sample.counts[:, None]
        close = np.abs(left).max(axis=0) <= 1e-6 * np.abs(sample.counts).max()
        some, factors_of = some[close], found[close] / norm[some[close]]
        parts = factors_of * _PARTS
        near = np.abs(parts - np.round(parts)) <= 1e-5 * np.maximum(np.abs(parts), 1)
        right = near.all(axis=1)
        for each, factors in zip(some[right], factors_of[right], strict=True):
            chosen = [terms[place] for place in each]
            if not grids and not all(shown(term.parts[1]) for term in chosen):
                continue
            law = _law(chosen, factors, columns[:, each], sample)
            if law is not None:
                yield law


def _law(
    terms: Sequence[CountedTerm], factors: Vector, columns: Vector, sample: _Sample
) -> Law | None:
    """Return a law with exact coefficients; None if it misses a value, or says nothing."""
    fractions = [Fraction(round(float(factor) * _PARTS), _PARTS) for factor in factors]
    exact = columns @ np.array([float(each) for each in fractions])
    allowed = EXACT * np.maximum(np.abs(sample.counts), 1)
    if 0 in fractions or not (np.abs(exact - sample.counts) <= allowed).all():
        return None
    if not _told_apart(terms, fractions, sample):
        return None
    weight = sum(
        term.weight + 1 + (each.denominator > 2)
        for term, each in zip(terms, fractions, strict=True)
    )
    text = " + ".join(
        _product(each, term.text) for each, term in zip(fractions, terms, strict=True)
    )
    return Law(text.replace("+ -", "- "), weight, terms=len(terms))


def _shown(sample: _Sample, function: str) -> bool:
    """Whether the function of p in a term has three values in the runs; of grids, the rows."""
    if not function or function in _OF_BLOCKS:
        return True
    shape = "grid_rows(p)" if "grid" in function or "sqrt(" in function else function
    return len(np.unique(column(shape, {PROCESSES: sample.values[PROCESSES]}))) >= LEAST_VALUES


def _told_apart(terms: Sequence[CountedTerm], factors: Sequence[Fraction], sample: _Sample) -> bool:
    """Whether the functions of p for one growth have three more values: many pairs meet few.

    A constant and the simplest functions are told apart by three, as long as they are added.
    """
    values = len(set(sample.values.get(PROCESSES, np.zeros(1)).tolist()))
    for growth in {term.parts[0] for term in terms}:
        of_it = [place for place, term in enumerate(terms) if term.parts[0] == growth]
        functions = {terms[place].parts[1] for place in of_it}
        simple = (
            len(functions - {""}) == 1
            and functions <= _SIMPLE_OF_P
            and all(factors[place] > 0 for place in of_it)
        )
        if len(functions) > 1 and not simple and values < len(functions) + 3:
            return False
    return True


def _product(factor: Fraction, term: str) -> str:
    if term == "1":
        return str(factor)
    if factor == 1:
        return term
    front = {1: "", -1: "-"}.get(factor.numerator, f"{factor.numerator}*")
    return front + term + (f"/{factor.denominator}" * (factor.denominator > 1))


# -- the terms --------------------------------------------------------------------------------


_GROWTHS = (
    ("{0}", 1),
    ("{0}**2", 2),
    ("ceil(log2({0}))", 2),
    ("sqrt({0})", 3),
)
"""Growths of one size."""
_OF_P = (
    ("p", 1),
    ("(p - 1)", 1),
    ("ceil(log2(p))", 1),
    ("1/p", 1),
    ("(p - 1)/p", 1),
    ("p*(p - 1)", 2),
    ("ceil(log2(p))/p", 2),
    ("p*ceil(log2(p))", 2),
    ("ceil(log2(p))*(ceil(log2(p)) + 1)", 2),
    ("ceil(log2(p))*(ceil(log2(p)) + 1)/p", 3),
    ("(p - 1)/p**2", 2),
    ("1/p**2", 2),
    ("(2*(p - 1) - ceil(log2(p)))", 3),  # p - 1 of all halves of halves, as in nested splits
    ("(2*(p - 1) - ceil(log2(p)))/p", 3),
    ("grid_rows(p)", 2),
    ("p/grid_rows(p)", 2),
    ("grid_rows(p)/p", 2),
    ("(grid_rows(p) - 1)", 3),
    ("(grid_rows(p) - 1)/p", 3),
    ("(p/grid_rows(p) - 1)", 3),
    ("(p/grid_rows(p) - 1)/p", 3),
    ("(grid_rows(p) - 1)/grid_rows(p)/p", 3),
    ("(p/grid_rows(p) - 1)*grid_rows(p)/p**2", 3),
    ("ceil(log2(grid_rows(p)))", 3),
    ("ceil(log2(p/grid_rows(p)))", 3),
    ("floor(sqrt(p))", 3),
    ("sqrt(p)", 3),
    ("1/sqrt(p)", 3),
)
"""Functions of p."""
_BLOCKS = (
    ("ceil({0}/p)", "ceil", 1),
    ("floor({0}/p)", "floor", 2),
    ("(p - 1)*ceil({0}/p)", "(p - 1)*ceil", 2),
    ("({0} - ceil({0}/p))", "- ceil", 2),
    ("({0} - floor({0}/p))", "- floor", 2),
    ("p*ceil({0}/p)", "p*ceil", 3),
    ("(p - 1)*floor({0}/p)", "(p - 1)*floor", 3),
    ("ceil(log2(p))*ceil({0}/p)", "log*ceil", 3),
    ("(p - 1)*ceil(ceil({0}/p)/p)", "(p - 1)*ceil of ceil", 3),
    ("(p - 1)*floor(floor({0}/p)/p)", "(p - 1)*floor of floor", 3),
    ("ceil(log2({0}/p))", "log2 of block", 1),
    ("ceil({0}/grid_rows(p))", "1/grid_rows(p)", 3),
    ("ceil({0}*grid_rows(p)/p)", "grid_rows(p)/p", 3),
)
"""What blocks of whole elements have of a size."""
_OF_BLOCKS = frozenset(name for _, name, _ in _BLOCKS) - {name for name, _ in _OF_P}
_SIMPLE_OF_P = {"", *(name for name, weight in _OF_P if weight == 1), "ceil"}


def _columns(
    used: Sequence[str], values: Values, growths: Sequence[tuple[str, int]]
) -> tuple[list[CountedTerm], Vector]:
    """Return the terms in some variables with their values, the simplest first.

    Terms that differ at other points than these are kept: they are laws that differ there.
    """
    terms: list[CountedTerm] = []
    columns: list[Vector] = []
    for term in sorted(_terms(used, values, growths), key=lambda each: each.weight):
        found = _part(term.text, values)
        if found is not None and found.any():
            terms.append(term)
            columns.append(found)
    return terms, np.stack(columns, axis=1)


def _part(text: str, values: Values) -> Vector | None:
    """Return the values of a part of a term; None where it has none."""
    try:
        return column(text, values)
    except FormulaError:
        return None


def _terms(
    used: Sequence[str], values: Values, growths: Sequence[tuple[str, int]]
) -> Iterator[CountedTerm]:
    sizes = [name for name in used if name != PROCESSES]
    of_p = [("", 0), *_OF_P] if PROCESSES in used else [("", 0)]
    for growth, weight in growths:
        for function, more in of_p:
            if growth and function.startswith("1/"):
                text = growth + function[1:]
            else:
                text = "*".join(filter(None, (growth, function))) or "1"
            yield CountedTerm(text, weight + more, (growth, function))
    if PROCESSES in used:
        cut = [(size, 1) for size in sizes]
        squares = [size for size in sizes if not (np.sqrt(values[size]) % 1).any()]
        cut += [each for size in squares for each in growths if each[0] == f"sqrt({size})"]
        for (size, more), (form, function, weight) in itertools.product(cut, _BLOCKS):
            yield CountedTerm(form.format(size), weight + more, (size, function))


def _growths(sizes: Sequence[str]) -> list[tuple[str, int]]:
    """Return the products of the growths of sizes, with their weights."""
    found = [("", 0)]
    for size in sizes:
        alone = [(form.format(size), weight) for form, weight in _GROWTHS]
        products = [
            (f"{one}*{other}", weight + more)
            for (one, weight), (other, more) in itertools.product(found[1:], alone)
            if weight + more <= _SIMPLE
        ]
        found += alone + products
    return found


_WAYS = ("floor", "ceil")
"""How a program makes a whole number of a part of a size."""
_TO_ROUND = ("{0}/2", "{0}/4", "{0}/8", "{0}/16", "{0}/32", "sqrt({0})", "log2({0})")
"""What a program makes a whole number of."""


def _rounded(sizes: Sequence[str], values: Values) -> list[tuple[str, int]]:
    """Return the growths that are rounded in some run, beside a constant and each size itself."""
    found = []
    for size, form in itertools.product(sizes, _TO_ROUND):
        text = form.format(size)
        exact = _part(text, values)
        if exact is not None and (np.floor(exact) != exact).any():
            found += [(f"{way}({text})", 2) for way in _WAYS]
    return [("", 0), *((size, 1) for size in sizes), *found] if found else []


# -- branches ---------------------------------------------------------------------------------


def _branches(sample: _Sample) -> list[Law]:
    """Return the laws of the larger runs with those of the smaller ones, which have another.

    What is larger is a variable, or where no variable alone tells it the block of a size: then the
    smaller runs, two at least, are all the same.

    The larger runs have three values of the variable at least, and for a sum two more than it has
    terms: the place of the bound is free, too, and so a sum meets one value more by chance. Two
    values suffice of p, of which a computer has few, and of a size on which the smaller runs do not
    depend: then only the barest laws are taken, and those that do not depend on the variable.
    """
    used = _used(sample)
    blocks = [f"{size}/{PROCESSES}" for size in used if size != PROCESSES and PROCESSES in used]
    for names in (used, blocks):
        if found := [law for name in names for law in _branch(sample, name)]:
            return sorted(found, key=_weight)
    return []


def _branch(sample: _Sample, name: str) -> list[Law]:
    """Return the laws with a branch at the least value of a variable at which there are any."""
    array = column(name, sample.values)
    distinct = np.unique(array)
    for last, bound in itertools.pairwise(distinct[:-1]):
        above = array >= bound
        larger, smaller, count = sample.part(above), sample.part(~above), (distinct >= bound).sum()
        same = len(smaller.counts) > 1 and np.ptp(smaller.counts) == 0
        if name not in sample.values and not same:
            continue
        others = _plain(smaller, most=2)
        laws = _plain(larger, most=2) if others and count >= LEAST_VALUES else []
        laws = [law for law in laws if law.terms == 1 or count >= law.terms + 2]
        free_below = others and (others[0].weight == 0 or name not in _used(smaller))
        if others and not laws and (name == PROCESSES or free_below):
            is_free = name not in _used(larger)
            bare = _plain(larger, most=2 if is_free else 1, least=2)
            laws = [law for law in bare if is_free or law.weight <= _BARE]
        begins = f"above({name}, {last:.12g})"
        found = []
        for law in laws:
            texts = (f"({law.text})*{begins}", f"({others[0].text})*(1 - {begins})")
            text = " + ".join(text for text in texts if not text.startswith("(0)*"))
            found.append(Law(text, law.weight + others[0].weight + 2))
        if found:
            return found
    return []
