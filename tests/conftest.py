"""What holds for the tests of all rooms, and which cases the commands leave out.

``make test`` leaves out what is marked ``slow``, which is ``pytest`` without ``-m``. Some cases are
marked by hand, and further ones here and where tests of ``tests/bsplib`` get their backends: they
find the fewest faults for their time. ``make test-all`` is ``pytest -m ""``.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
from collections.abc import Iterator
from itertools import groupby

import pytest

from bsplib import core

from .hosts.fixtures import hosts, hosts_of_the_file  # noqa: F401 - fixtures of all tests
from .scripted import Script

# A shell starts its background jobs with SIGINT ignored, and programs inherit that.
# Some tests are about Ctrl-C, hence here it means what it does at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

WITHOUT_SLOW = "not slow"
"""What pyproject.toml says to run."""


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    """Restore where modules are looked for, which a command that a test calls may change."""
    before = list(sys.path)
    yield
    sys.path[:] = before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an order in which no test may need that another one ran before it."""
    parser.addoption("--shuffle", metavar="SEED", help="Run the tests of each file in any order.")


def pytest_configure(config: pytest.Config) -> None:
    """Run what is named by its node id (``pytest FILE::TEST``), whatever it is."""
    if config.option.markexpr == WITHOUT_SLOW and any("::" in each for each in config.args):
        config.option.markexpr = ""


def pytest_report_header() -> str:
    """Name the build of the core that is tested."""
    return f"core: {core.BUILD}"


def draws(item: pytest.Item) -> bool:
    """Tell whether a test draws examples; Hypothesis marks it later."""
    return hasattr(getattr(item, "obj", None), "is_hypothesis_test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark further cases.

    ``quick`` is the first case of each test without processes of the system, and one test with
    them of each file, but none that is lengthy, needs a browser or an MPI, or draws examples.
    ``slow`` are further values of parameters on real processes, on a single one, in a browser or
    where a test is lengthy: what a value does is decided by code that all of these share. Of each
    file one test runs on ranks of an MPI, which keep both cores busy also while they wait, and one
    of the lengthy tests that start ranks by themselves, on one of both MPIs. A lengthy test whose
    values take different code is marked ``lengthy(values="all")``.
    """
    seen: set[object] = set()
    with_ranks: dict[object, tuple[str, int]] = {}
    for item in items:
        marked = item.get_closest_marker
        if marked("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        backend, _, _ = str(parameters.get("backend", "sim")).partition("-")
        real = "shm" if marked("real_processes") and backend == "sim" else backend
        lengthy = marked("lengthy")
        nprocs = parameters.get("nprocs")
        count = nprocs if marked("every_count") else None
        place = (item.path if backend == "mpi" else test, backend, count)
        kind = test if real == "sim" else (item.path, real)
        is_costly = backend != "sim" or nprocs == 1 or marked("browser")
        is_costly = is_costly or (lengthy and not lengthy.kwargs)
        if place in seen and is_costly and "mpi" not in parameters:
            item.add_marker("slow")
        elif "mpi" in parameters and lengthy:
            chosen = with_ranks.setdefault(item.path, (test, len(with_ranks) % 2))
            if chosen != (test, item.callspec.indices["mpi"]):
                item.add_marker("slow")
        elif not (kind in seen or lengthy or marked("browser") or draws(item)):
            seen.add(kind)
            if backend != "mpi":
                item.add_marker("quick")
        seen.add(place)
    if seed := config.getoption("--shuffle"):
        files = [list(group) for _, group in groupby(items, lambda item: item.path)]
        for tests in files:
            random.Random(seed).shuffle(tests)
        items[:] = [item for tests in files for item in tests]


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what was collected: looking at it takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def script() -> type[Script]:
    """Return the maker of runs that are defined by hand."""
    return Script
