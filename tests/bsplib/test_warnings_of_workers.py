"""Warnings of ``check=True`` reach the caller of a run: pytest, ``-W error``, ``pytest.warns``."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from bsplib import CheckWarning
from tests.processes import run_python

WAYS = [
    {"backend": "sim"},
    *({"backend": "shm", "start_method": each} for each in ("fork", "forkserver", "spawn")),
]
WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("start_method", "sim"))

TESTS = """
import pytest

import bsplib

WAY = {way}


def unread(bsp, number):
    for _ in range(number):
        bsp.send(0, "one")
        bsp.sync()


def run(number):
    return bsplib.run(unread, number, nprocs=2, check=True, **WAY)


def test_caught():
    with pytest.warns(bsplib.CheckWarning) as caught:
        run(1)
    (found,) = caught
    assert "2 messages to process 0 (1 from process 0, 1 from process 1)" in str(found.message)


def test_shown():
    assert run(2) == [None, None]


@pytest.mark.filterwarnings("error")
def test_an_error():
    with pytest.raises(bsplib.CheckWarning, match="2 messages to process 0"):
        run(2)
"""


@pytest.fixture
def run_pytest(tmp_path):
    """Run pytest on a small file in a process of its own."""

    def run(way):
        (tmp_path / "test_small.py").write_text(TESTS.replace("{way}", repr(way)))
        return run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)

    return run


@pytest.mark.lengthy
@WAY
def test_pytest_sees_the_warnings_of_processes(run_pytest, way):
    done = run_pytest(way)
    assert "3 passed, 2 warnings" in done.stdout
    assert "test_small.py:12: CheckWarning: 2 messages to process 0" in done.stdout
    assert "CheckWarning: 2 messages to process 0" not in done.stderr


@pytest.mark.procs(2)
@pytest.mark.filterwarnings("error")
def test_a_warning_is_the_error_of_the_run_where_the_caller_wants_it_so(run):
    with pytest.raises(CheckWarning, match="2 messages to process 0") as caught:
        run(repeats, check=True)
    assert not any("backends" in str(frame.path) for frame in caught.traceback)
    assert run(lambda bsp: bsp.pid, check=True) == [0, 1]


def repeats(bsp):
    for _ in range(5):
        bsp.send(0, "one")
        bsp.sync()
    bsp.sync()


@pytest.mark.procs(2)
def test_each_line_is_warned_of_once_on_every_backend(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(repeats, check=True)
    texts = sorted(str(each.message) for each in caught)
    assert len(texts) == 2
    assert all(each.category is CheckWarning and each.filename == __file__ for each in caught)


def test_a_warning_is_there_before_a_run_ends_that_nothing_else_ends(script):
    endless = script(
        """
        import bsplib

        def main(bsp):
            x = bsp.zeros(1)
            bsp.sync()
            while x[0] < 5:
                bsp.put(0, [9.0], x)
                x = x + 0
                bsp.sync()

        if __name__ == "__main__":
            bsplib.run(main, nprocs=1, check=True, backend="shm")
        """
    )
    with subprocess.Popen(
        [sys.executable, str(endless)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert "script.py:10: CheckWarning: the array 'x' of process 0" in process.stderr.readline()
        process.kill()


@pytest.mark.procs(2)
def test_what_a_program_returns_comes_with_its_warnings(run):
    def main(bsp):
        bsp.send(0, "one")
        bsp.sync()
        return bsp.pid, bytes(1 << 20)

    with pytest.warns(CheckWarning):
        found = run(main, check=True)
    assert found == [(0, bytes(1 << 20)), (1, bytes(1 << 20))]


@pytest.mark.procs(2)
def test_the_caller_gets_warnings_and_the_error_of_a_run(run):
    def main(bsp):
        bsp.send(0, "one")
        bsp.sync()
        bsp.sync()
        raise KeyError(bsp.pid)

    with pytest.warns(CheckWarning), pytest.raises(KeyError, match="0"):
        run(main, check=True)
