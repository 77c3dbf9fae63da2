"""Every program of these tests runs on every backend, with few and with many processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import bsplib
from bsplib.backends import table
from bsplib.backends.mpi.launcher_environment import INSIDE
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace

from ..mpi_ranks import MPIS, end, ranks_of
from ..selection import Place, is_thinned, nearest_places, usual_places
from .leftovers import children, nothing_stays_in_shared_memory, shared_memory
from .pipes_backend import PIPES
from .pools import LOOKING, Pools, can_be_kept, expects_an_error, may_stay

BACKENDS = ("shm", "sim")
REAL = ("shm",)
"""Backends whose processes are those of the system."""
WITHOUT_SHARED_MEMORY = ("test_put", "test_get", "test_messages", "test_partition", "test_oblsync")
"""Files whose tests run on a backend of the tests, too, which shares nothing."""
OF_THE_CORE = frozenset(
    f"test_{what}"
    for what in (
        *("put", "get", "messages", "sync", "oblsync", "places", "registration", "irregular", "on"),
        *("again", "delivery", "fences", "lone_put", "operations", "run_ahead", "values"),
        *("waiting", "recorder", "sync_stacks", "virtual", "virtual_time", "random_programs"),
    )
)
"""Files whose tests are marked ``core``."""
OF_AN_MPI = OF_THE_CORE | {
    f"test_{what}" for what in ("allocation", "collectives", "overlaps", "partition", "split")
}
"""Files whose cases on an MPI are marked ``mpi`` where they may use ranks of earlier ones."""
COUNTS = (1, 2, 3, 4, 8)


PRELOADED = ["bsplib", "pytest"]
"""What the fork server has imported, in make test: else each process that it forks imports it."""


def pytest_configure(config: pytest.Config) -> None:
    table.register(PIPES)
    if os.environ.get("BSP_POISON"):  # programs that tests start have to find what it names, too
        folders = str(config.rootpath), os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    if not config.getoption("--all"):
        multiprocessing.set_forkserver_preload(PRELOADED)
    config.addinivalue_line(
        "markers",
        "procs(*counts, least=1): run the program with these numbers of processes, or with "
        "all usual ones from the least on; without it with all",
    )
    config.addinivalue_line(
        "markers", "real_processes: virtual processors cannot show this, whatever they do"
    )
    config.addinivalue_line(
        "markers",
        "forked: the program uses what only processes inherit that are forked from this one",
    )
    config.addinivalue_line(
        "markers", "not_on_mpi(why): there is nothing to test on an MPI; why says the reason"
    )
    config.addinivalue_line(
        "markers", "fresh: each run of the test has processes of its own, in make test, too"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            if item.path.stem in OF_THE_CORE:
                item.add_marker("core")
            if _mpi_of(item) and isinstance(item, pytest.Function):
                item.add_marker("on_mpi")
                if _is_mpi(item):
                    item.add_marker("mpi")
            if isinstance(item, pytest.Function) and expects_an_error(item):
                item.add_marker("error")
    items.sort(key=_order)


def _is_mpi(item: pytest.Function) -> bool:
    """Tell whether make test runs a case of a test on an MPI."""
    return item.path.stem in OF_AN_MPI and _is_for_all(item)


def _is_for_all(item: pytest.Function) -> bool:
    """Tell whether a test expects no error, and its processes may be those of earlier ones."""
    return may_stay(item) and not expects_an_error(item)


def _order(item: pytest.Item) -> tuple[str, bool, bool, bool, int]:
    """Return the sort key of a test: ranks are kept for the next run that takes no more of them.

    They are of one MPI, and are ended by some errors. Hundreds of them are not kept.
    """
    mpi = _mpi_of(item)
    if not mpi or not isinstance(item, pytest.Function):
        return mpi, False, False, False, 0
    nprocs = item.callspec.params.get("nprocs", 0)
    return mpi, not may_stay(item), expects_an_error(item), nprocs > max(COUNTS), -nprocs


def _mpi_of(item: pytest.Item) -> str:
    """Return the MPI on which a test runs; empty if on none."""
    backend = item.callspec.params.get("backend") if hasattr(item, "callspec") else None
    return backend if backend in MPIS else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    asked = {"nprocs", "backend"}.intersection(metafunc.fixturenames)
    if asked == {"nprocs", "backend"}:
        places: Iterable[Place] = list(product(_counts(metafunc), _backends(metafunc)))
        if is_thinned(metafunc.config):
            every_count = metafunc.definition.get_closest_marker("every_count") is not None
            possible = nearest_places if _is_short_command(metafunc.config) else usual_places
            places = possible(places, every_count=every_count)
        ids = [f"p={count}-{backend}" for count, backend in places]
        metafunc.parametrize(("nprocs", "backend"), places, indirect=True, ids=ids)
    elif "nprocs" in asked:
        metafunc.parametrize("nprocs", _counts(metafunc), indirect=True, ids="p={}".format)
    elif "backend" in asked:
        metafunc.parametrize("backend", _backends(metafunc), indirect=True)


def _is_short_command(config: pytest.Config) -> bool:
    return any(map(config.getoption, ("--quick", "--core")))


def _backends(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    marked = metafunc.definition.get_closest_marker
    names = REAL if marked("real_processes") is not None else BACKENDS
    if Path(metafunc.module.__file__ or "").stem in WITHOUT_SHARED_MEMORY:
        names = (*names, PIPES.name)
    is_fixed = any(map(marked, ("forked", "fresh", "not_on_mpi")))
    looks = not LOOKING.isdisjoint(metafunc.fixturenames)  # at this process, which is no rank
    if is_fixed or looks or not _may_be_on_an_mpi(metafunc):
        return names
    return (*names, *MPIS)


def _may_be_on_an_mpi(metafunc: pytest.Metafunc) -> bool:
    """Tell whether a command may run cases on an MPI; otherwise none are made, to save time."""
    return not is_thinned(metafunc.config) or _is_mpi(metafunc.definition)


def _counts(metafunc: pytest.Metafunc) -> Iterable[int]:
    marker = metafunc.definition.get_closest_marker("procs")
    if marker is None:
        return COUNTS
    least = marker.kwargs.get("least", 1)
    return marker.args or [count for count in COUNTS if count >= least]


@pytest.fixture
def nprocs(request: pytest.FixtureRequest) -> int:
    """Number of processes."""
    count: int = request.param
    return count


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    if name not in MPIS:
        yield name
        return
    monkeypatch = request.getfixturevalue("monkeypatch")  # asked for here: see pools.LOOKING
    monkeypatch.setenv(INSIDE, "mpi")  # test_inside.py is about ranks that share memory
    with ranks_of(MPIS[name]) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def ranks_end() -> Iterator[None]:
    """End the ranks that the last test of an MPI has left."""
    yield
    end()


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    with Pools() as made:
        yield made


@pytest.fixture
def run(
    request: pytest.FixtureRequest, backend: str, nprocs: int, pools: Pools
) -> Callable[..., list[Any]]:
    """Run a program; as ``bsplib.run`` with the backend and the number of processes at hand.

    Real processes stay for the next test of the file where they may, since their start takes
    most of the time. With ``--all`` each run has its own.
    """
    is_thin = not request.config.getoption("--all")
    kept = backend == "shm" and is_thin and _is_for_all(request.node)

    def run_it(main: Callable[..., Any], *args: Any, **more: Any) -> list[Any]:
        if kept and can_be_kept(more):
            return pools.run(main, *args, nprocs=nprocs, **more)
        return bsplib.run(main, *args, nprocs=nprocs, backend=backend, **more)

    return run_it


@pytest.fixture
def record(run: Callable[..., list[Any]], tmp_path: Path) -> Callable[..., Run]:
    """Run a program with records, and return what the trace holds."""

    def record_it(main: Callable[..., Any], *args: Any) -> Run:
        path = tmp_path / "recorded.bsp"
        run(main, *args, profile=path, lines=False)  # samples would add stacks
        (recorded,) = read_trace(path).runs
        return recorded

    return record_it


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Write a script and return its path."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def execute(script: Callable[[str], Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script in an interpreter of its own to its end, from a file or as if typed in."""

    def execute_it(
        text: str, *args: str, typed_in: bool = False
    ) -> subprocess.CompletedProcess[str]:
        source = ["-c", text] if typed_in else [script(text)]
        return subprocess.run(
            [sys.executable, *source, *args],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return execute_it


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Compare descriptors, children and names in shared memory with those of before."""
    bsplib.run(lambda bsp: None, nprocs=1)  # starts what multiprocessing starts once
    gc.collect()  # traces that earlier tests have read are closed now, not during this test
    names = shared_memory()
    before = (os.listdir("/proc/self/fd"), children(os.getpid()))
    yield
    assert (os.listdir("/proc/self/fd"), children(os.getpid())) == before
    assert nothing_stays_in_shared_memory(names)


@pytest.fixture(scope="session")
def may_mount() -> None:
    """Skip where a test may not have a /dev/shm of its own."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m none /dev/shm"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"a small /dev/shm may not be mounted here: {done.stderr.strip()}")


@pytest.fixture
def with_little(
    script: Callable[[str], Path],
    may_mount: None,  # it skips
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script where /dev/shm has a few megabytes, as in a container."""

    def run_it(text: str, *args: str, size: str = "64m") -> subprocess.CompletedProcess[str]:
        command = f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"'
        return subprocess.run(
            ["unshare", "-m", "sh", "-c", command, "sh", sys.executable, script(text), *args],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_it
