"""Which tests a command runs, and why.

``make test-all`` (``pytest --all``) runs every case of every test, on real processes in all
numbers, and draws four times as many examples. It starts the processes of every run anew, but for
the ranks of an MPI: these stay for the next test, also after an error, unless the test ends them or
is about their start or end. Its parts run three at a time. What runs on an MPI is marked
``on_mpi``. On the interpreted core no more of it is run than in ``make test``, since the ranks
have the same port there, and what the port has of the core is tested by all other cases.

``make test`` (``pytest``) leaves out the cases that find the fewest faults for their time:

1. what is marked ``slow``;
2. real processes in other numbers than 1 and 3. A run of 8 processes takes five times as long
   as one of a virtual group, on two cores, and 3 is the least number with a process that is
   neither the first, nor the last, nor everybody's neighbour by accident. A test that takes
   neither number keeps its least one, and a test marked ``every_count`` keeps them all.
   On the backend of the tests, which starts processes for every run, 3 alone is enough.
   The simulator takes all numbers;
3. combinations of parameters beyond pairs. A fault that needs three parameters to have certain
   values at once is rare. Hence of all combinations only enough are run for each value of a
   parameter to meet each value of every other one. Backend and number of processes count as one
   parameter: in the simulator every value is tried at every number. Real processes, where virtual
   ones have the pairs, and tests marked ``lengthy`` try each value once on each backend, and
   each number of processes with some value: what a value does at a number of processes is
   decided by code that all backends share, and what it does on a backend is the same for
   2 processes and more;

4. an MPI, but for one case of each test marked ``mpi``, on 3 processes of one MPI: these keep
   both cores busy. Tests that expect an error are not among them.
   Of tests with the fixture ``mpi`` that are marked ``lengthy``, the first of each file runs, on
   one of the two MPIs: which one follows from the name of the file. They start ranks of their own,
   which takes seconds on both cores;

5. tests in a browser, beyond one case of each: a browser keeps both cores busy;

6. real processes of a test that expects an error, beyond one case on each backend, where virtual
   ones have the other cases, and the test is not marked ``core``. What is wrong is found by code
   that all backends share; what a backend does with an error is the same for all errors, and new
   processes have to be started for each of them.

``make test`` also runs a part of this on the interpreted core (``pytest --core``): of each
test marked ``core`` one case on real processes and one in the simulator, with 3 processes where
it can be, and few examples of those that draw programs. It leaves out what is marked
``lengthy``, and tests that start an interpreter of their own. All other tests run on the
compiled core, where there is one; ``make test-all`` runs all of ``tests/bsplib`` on both, but for
the cases on an MPI.

A run that is not about the start or the end of processes is given to processes that stay; see
the fixture ``run`` of ``tests/bsplib``.

``make test-quick`` (``pytest --quick``) runs one case of every test of these, in the simulator
with 3 processes where it can be, and of each file one test on real processes. It leaves out
what is marked ``lengthy`` or ``browser``, tests that draw many examples, and tests that start
an interpreter of their own. Both shorter commands choose among cases at one number of processes
for each backend: the others are not even made, so the cases need not be those of ``make test``.

What is named by its node id (``pytest FILE::TEST``) is run whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import Protocol, TypeAlias, TypeVar
from zlib import crc32

import pytest

USUAL_COUNTS = (1, 3)
"""Numbers of real processes that are enough to find most faults."""
QUICK_COUNT = 3
MPI = "mpi-"
"""So begin the names of backends on an MPI."""
USUAL_MPI = "mpi-mpich"
VIRTUAL = "sim"
"""The backend whose processes cost next to nothing; those of all others are real."""
OF_THE_TESTS = "pipes"
"""The backend of the tests, which starts processes for every run."""
INTERPRETERS = frozenset({"execute", "script", "with_little"})
"""Fixtures of tests that start an interpreter of their own."""
LENGTHY_S = 0.25
"""What takes longer should be marked ``lengthy``; pytest names what takes twice as long."""
SLOW_S = 2.0
"""The same for ``slow``."""

Place: TypeAlias = tuple[int, str]
"""A number of processes and a backend."""

_Key = TypeVar("_Key", bound=Hashable)


class _Places(Protocol):
    def __call__(self, places: Iterable[Place], *, every_count: bool) -> list[Place]: ...


def is_thinned(config: pytest.Config) -> bool:
    """Tell whether a command runs a part of the cases: all are with ``--all`` and for node ids."""
    named = any("::" in argument for argument in config.args)
    return not (config.getoption("--all") or named)


def usual(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return what ``make test`` runs."""
    return _chosen(items, usual_places)


def _chosen(items: Sequence[pytest.Item], places: _Places) -> list[pytest.Item]:
    kept = [item for item in items if not _is_marked(item, "slow") and _may_use_its_mpi(item)]
    kept = [item for cases in _grouped(kept, _test).values() for item in _at(places, cases)]
    for thin in (_one_on_an_mpi, _one_real_error, _combined, _one_in_a_browser):
        kept = [item for cases in _grouped(kept, _test).values() for item in thin(cases)]
    kept = [item for cases in _grouped(kept, _file).values() for item in _one_with_an_mpi(cases)]
    return _in_order(items, kept)


def quick(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return what ``make test-quick`` runs."""
    able = [item for item in _chosen(items, nearest_places) if _is_quick(item)]
    kept = []
    for cases in _grouped(able, _test).values():
        if _backend(cases[0]) is None:
            kept.append(cases[0])
        elif virtual := [item for item in cases if not _is_real(item)]:
            kept.append(_nearest(virtual))
    real = [item for item in able if _is_real(item)]
    kept += [
        cases[0] for cases in _grouped(real, lambda item: (item.path, _backend(item))).values()
    ]
    return _in_order(items, kept)


def of_the_core(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return what ``make test`` runs on the interpreted core."""
    of_it = [item for item in items if _is_marked(item, "core") and _is_short(item)]
    able = _chosen(of_it, nearest_places)
    alike = _grouped(able, lambda item: (_test(item), _backend(item) is None or _is_real(item)))
    return _in_order(items, [_nearest(cases) for cases in alike.values()])


def _nearest(cases: list[pytest.Item]) -> pytest.Item:
    return min(cases, key=lambda item: abs(_nprocs(item) - QUICK_COUNT))


def _is_quick(item: pytest.Item) -> bool:
    return _is_short(item) and not _is_marked(item, "browser", "hypothesis")


def _is_short(item: pytest.Item) -> bool:
    runs_here = INTERPRETERS.isdisjoint(getattr(item, "fixturenames", ()))
    return runs_here and not _is_marked(item, "lengthy")


def _is_marked(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) is not None for name in names)


def usual_places(places: Iterable[Place], *, every_count: bool) -> list[Place]:
    """Return the numbers of processes and the backends on which ``make test`` may run a test.

    Cases at other places are not even made, since pytest takes as long for one as a short test.
    """
    places = list(places)
    counts: dict[str, list[int]] = {}
    for count, backend in places:
        counts.setdefault(backend, []).append(count)
    kept = {backend: _usual_counts(backend, counts[backend], every_count) for backend in counts}
    return [(count, backend) for count, backend in places if count in kept[backend]]


def nearest_places(places: Iterable[Place], *, every_count: bool) -> list[Place]:
    """Return one number of processes for each backend: all that the shorter commands run."""
    nearest: dict[str, Place] = {}
    for place in usual_places(places, every_count=every_count):
        best = nearest.setdefault(place[1], place)
        nearest[place[1]] = min(best, place, key=lambda each: abs(each[0] - QUICK_COUNT))
    return list(nearest.values())


def _usual_counts(backend: str, counts: Sequence[int], every_count: bool) -> set[int]:
    if backend.startswith(MPI):
        return {QUICK_COUNT} if backend == USUAL_MPI else set()
    if every_count or backend == VIRTUAL:
        return set(counts)
    wanted = {QUICK_COUNT} if backend == OF_THE_TESTS else set(USUAL_COUNTS)
    return wanted.intersection(counts) or {min(counts)}


def _at(places: _Places, cases: list[pytest.Item]) -> list[pytest.Item]:
    found = dict.fromkeys(place for item in cases if (place := _place(item)) is not None)
    kept = {None, *places(found, every_count=_is_marked(cases[0], "every_count"))}
    return [item for item in cases if _place(item) in kept]


def _may_use_its_mpi(item: pytest.Item) -> bool:
    """Tell whether a case is on no MPI, or is one that make test may run."""
    return not _is_on_an_mpi(item) or (_nprocs(item) > 0 and _is_marked(item, "mpi"))


def _is_on_an_mpi(item: pytest.Item) -> bool:
    return (_backend(item) or "").startswith(MPI)


def _one_on_an_mpi(cases: list[pytest.Item]) -> list[pytest.Item]:
    further = [item for item in cases if _is_on_an_mpi(item)][1:]
    return [item for item in cases if item not in further]


def _one_with_an_mpi(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of a file without lengthy tests of MPI but the first, on one of the MPIs."""
    lengthy = [item for item in cases if _installation(item) and _is_marked(item, "lengthy")]
    first = [item for item in lengthy if _test(item) == _test(lengthy[0])]
    installations = list(dict.fromkeys(map(_installation, first)))
    chosen = (
        [installations[crc32(_file(lengthy[0]).encode()) % len(installations)]] if first else []
    )
    kept = [item for item in first if _installation(item) in chosen]
    return [item for item in cases if item not in lengthy or item in kept]


def _one_in_a_browser(cases: list[pytest.Item]) -> list[pytest.Item]:
    return cases if cases[0].get_closest_marker("browser") is None else cases[:1]


def _one_real_error(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of a test without further real ones if it expects an error."""
    virtual = [item for item in cases if _backend(item) == VIRTUAL]
    if not virtual or not _is_marked(cases[0], "error") or _is_marked(cases[0], "core"):
        return cases
    real = [item for item in cases if _is_real(item)]
    kept = {_nearest(alike) for alike in _grouped(real, _backend).values()}
    return [item for item in cases if item not in real or item in kept]


def _combined(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return cases of a test in which what has to be combined is combined."""
    if not _own_parameters(cases[0]):
        return cases
    alike = _grouped(cases, _is_real)
    virtual, real = alike.get(False, []), alike.get(True, [])
    is_long = _is_marked(cases[0], "lengthy")
    on_one = all(_nprocs(item) == 1 for item in real)
    return [
        *_covering(virtual, _values_of if is_long else _pairs_of),
        *_covering(real, _values_of if (is_long or virtual) and not on_one else _pairs_of),
    ]


def _covering(
    cases: list[pytest.Item], parts_of: Callable[[pytest.Item], set[Hashable]]
) -> list[pytest.Item]:
    """Return cases that have together the parts of all.

    Each time the case is taken with most of the parts that have not met yet, and the first
    of several.
    """
    parts = {item: parts_of(item) for item in cases}
    kept = []
    while parts:
        best = max(parts, key=lambda item: len(parts[item]))
        kept.append(best)
        met = parts.pop(best)
        parts = {item: rest for item, has in parts.items() if (rest := has - met)}
    return kept


def _pairs_of(item: pytest.Item) -> set[Hashable]:
    """Return each two parameters that meet in a case."""
    values: list[Hashable] = [("place", _backend(item), _nprocs(item)), *_own_parameters(item)]
    return set(combinations(values, 2))


def _values_of(item: pytest.Item) -> set[Hashable]:
    """Return the place of a case, and what parameters it tries there: none on one real process."""
    place = ("place", _backend(item), _nprocs(item))
    if _is_real(item) and _nprocs(item) == 1:
        return {place}
    return {place, *((_backend(item), value) for value in _own_parameters(item))}


# -- what a case is -------------------------------------------------------------------------------


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _own_parameters(item: pytest.Item) -> tuple[tuple[str, int], ...]:
    """Return the parameters but for backend and number of processes.

    What a value is does not matter here, only whether it is the same; many cannot be hashed.
    """
    own = _parameters(item).items()
    return tuple((name, id(value)) for name, value in own if name not in ("backend", "nprocs"))


def _place(item: pytest.Item) -> Place | None:
    """Return where a case runs; None where one of both is no parameter."""
    backend, nprocs = _backend(item), _nprocs(item)
    return (nprocs, backend) if backend and nprocs else None


def _backend(item: pytest.Item) -> str | None:
    return _parameters(item).get("backend")  # type: ignore[return-value]


def _nprocs(item: pytest.Item) -> int:
    """Return the number of processes, 0 where it is no parameter."""
    return _parameters(item).get("nprocs", 0)  # type: ignore[return-value]


def _installation(item: pytest.Item) -> Hashable:
    """Return the MPI on which the fixture ``mpi`` lets a test run; None for other tests."""
    return _parameters(item).get("mpi")


def _is_real(item: pytest.Item) -> bool:
    return _backend(item) not in (None, VIRTUAL)


def _grouped(
    items: Iterable[pytest.Item], key: Callable[[pytest.Item], _Key]
) -> dict[_Key, list[pytest.Item]]:
    groups: dict[_Key, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _in_order(items: Sequence[pytest.Item], kept: Iterable[pytest.Item]) -> list[pytest.Item]:
    chosen = set(kept)
    return [item for item in items if item in chosen]
