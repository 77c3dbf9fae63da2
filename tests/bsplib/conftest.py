"""Every program of these tests runs on every backend, with few and with many processes.

A test with a parameter ``bsp`` is itself the program. Other tests run one with the fixture ``run``.
"""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bsplib
from bsplib.backends import table
from bsplib.backends.mpi.ranks import INSIDE
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from tests.processes import run_command, run_python

from ..mpi_ranks import MPIS, end, ranks_of
from .leftovers import children, nothing_stays_in_shared_memory, shared_memory
from .pipes_backend import PIPES
from .pools import LOOKING, Pools, can_be_kept, expects_an_error, may_stay

BACKENDS = ("shm", "sim")
REAL = ("shm",)
"""Backends whose processes are those of the system."""
WITHOUT_SHARED_MEMORY = ("test_put", "test_get", "test_messages", "test_partition", "test_oblsync")
"""Files whose tests run on a backend of the tests, too, which shares nothing."""
WAITING_IN_VAIN = frozenset(
    f"test_{what}"
    for what in ("sync", "oblsync", "partition", "split", "failures", "abort_and_exit", "check")
)
"""Files with errors that each backend finds in its own way, as who waits for whom in vain."""
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
"""Files of which ``make test`` runs a case on an MPI, where it may use ranks of earlier ones."""
INTERPRETERS = frozenset({"execute", "script", "with_little"})
"""Fixtures of tests that start an interpreter of their own."""
COUNTS = (1, 2, 3, 4, 8)
USUAL_COUNT = {"sim": 3, "mpi-mpich": 3, "mpi-openmpi": 3}
"""Numbers of processes that make test takes; 2 on other backends."""
USUAL_MPI = "mpi-mpich"
PRELOADED = ["bsplib", "pytest"]
"""What the fork server has imported: else each process that it forks imports it."""


def pytest_configure(config: pytest.Config) -> None:
    table.register(PIPES)
    if os.environ.get("BSP_POISON"):  # programs that tests start have to find what it names, too
        folders = str(config.rootpath), os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
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
    config.addinivalue_line("markers", "fresh: each run of the test has processes of its own")
    config.addinivalue_line("markers", "raises(kind, match): the error of a test that is a program")
    config.addinivalue_line("markers", "checked: a test that is a program runs with check=True")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        is_here = item.path.is_relative_to(here)
        if is_here and not INTERPRETERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("lengthy")
        if item.path.parent == here:
            if item.path.stem in OF_THE_CORE:
                item.add_marker("core")
            if _mpi_of(item) and isinstance(item, pytest.Function):
                item.add_marker("on_mpi")
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
        places = [
            pytest.param(count, backend, marks=marks, id=f"p={count}-{backend}")
            for backend in _backends(metafunc)
            for count, marks in _counts_on(backend, metafunc)
        ]
        metafunc.parametrize(("nprocs", "backend"), places, indirect=True)
    elif "nprocs" in asked:
        metafunc.parametrize("nprocs", _counts(metafunc), indirect=True, ids="p={}".format)
    elif "backend" in asked:
        usual = {*BACKENDS, PIPES.name}
        backends = [
            pytest.param(name, marks=() if name in usual else pytest.mark.slow)
            for name in _backends(metafunc)
        ]
        metafunc.parametrize("backend", backends, indirect=True)


def _counts_on(backend: str, metafunc: pytest.Metafunc) -> Iterator[tuple[int, Any]]:
    """Yield numbers of processes, the usual one first, and the mark of those that are slow.

    In the simulator 3 is the least number with a process that is neither the first, nor the last,
    nor everybody's neighbour by accident. For processes of the system it is 2: they have a core
    each, and what depends on their number is code that all backends share, as is what finds most
    errors: after each, new processes have to be started. Processes with pipes are for what finds
    other errors, and for a program of each primitive. A command that leaves slow cases out does not
    make them: pytest takes as long for one as a short test.
    """
    counts, definition = _counts(metafunc), metafunc.definition
    usual = USUAL_COUNT.get(backend, 2)
    nearest = min([count for count in counts if count >= usual] or [max(counts)])
    marked = definition.get_closest_marker
    repeats = expects_an_error(definition) if backend == "shm" else not marked("every_count")
    if backend == USUAL_MPI:
        chosen = {usual} if _is_mpi(definition) else set()
    elif backend in MPIS:  # what two MPIs do in different ways depends little on the number
        counts, chosen = [nearest], set()
    elif marked("every_count") and backend in BACKENDS:
        chosen = set(counts)
    elif backend == "sim" or definition.path.stem in WAITING_IN_VAIN or marked("real_processes"):
        chosen = {nearest}
    else:
        chosen = set() if repeats else {nearest}
    for count in sorted(counts, key=lambda count: (count != nearest, count)):
        if count in chosen:
            yield count, ()
        elif not any(word in metafunc.config.option.markexpr for word in ("not slow", "quick")):
            yield count, pytest.mark.slow


def _backends(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    marked = metafunc.definition.get_closest_marker
    names = REAL if marked("real_processes") is not None else BACKENDS
    if Path(metafunc.module.__file__ or "").stem in WITHOUT_SHARED_MEMORY:
        names = (*names, PIPES.name)
    is_fixed = any(map(marked, ("forked", "fresh", "not_on_mpi")))
    looks = not LOOKING.isdisjoint(metafunc.fixturenames)  # at this process, which is no rank
    return names if is_fixed or looks else (*names, *MPIS)


def _counts(metafunc: pytest.Metafunc) -> Sequence[int]:
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
    most of the time. Cases that are left to ``make test-all`` have their own.
    """
    is_usual = request.node.get_closest_marker("slow") is None
    kept = backend == "shm" and is_usual and _is_for_all(request.node)

    def run_it(main: Callable[..., Any], *args: Any, **more: Any) -> list[Any]:
        if kept and can_be_kept(more):
            return pools.run(main, *args, nprocs=nprocs, **more)
        return bsplib.run(main, *args, nprocs=nprocs, backend=backend, **more)

    return run_it


class Programs(NamedTuple):
    """What runs a test that is a program."""

    run: Callable[..., list[Any]]


@pytest.fixture
def bsp(run: Callable[..., list[Any]]) -> Programs:
    """Make a program of a test: all processes run it, with their groups in the place of this."""
    return Programs(run)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a program, which returns nothing or raises what its marker says."""
    programs = pyfuncitem.funcargs.get("bsp")
    if not isinstance(programs, Programs):
        return None
    program = pyfuncitem.obj
    names = set(inspect.signature(program).parameters) - {"bsp"}
    given = {name: pyfuncitem.funcargs[name] for name in names}
    if pyfuncitem.get_closest_marker("checked"):
        given["check"] = True
    if expected := pyfuncitem.get_closest_marker("raises"):
        with pytest.raises(expected.args[0], match=_words(pyfuncitem, **expected.kwargs)):
            programs.run(program, **given)
    else:
        assert programs.run(program, **given) == [None] * pyfuncitem.funcargs["nprocs"]
    return True


def _words(test: pytest.Function, match: Any) -> str:
    """Return what an error is to say: a pattern, or one made of the program and its parameters."""
    if isinstance(match, str):
        return match
    given = {"program": test.obj, **test.funcargs}
    return str(match(*map(given.get, inspect.signature(match).parameters)))


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
        return run_python(*source, *args)

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
    done = run_command("unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m none /dev/shm")
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
        return run_command(
            "unshare", "-m", "sh", "-c", command, "sh", sys.executable, script(text), *args
        )

    return run_it
