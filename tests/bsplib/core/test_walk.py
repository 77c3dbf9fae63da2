"""How many files a reader enters who follows a transfer from its call to its destination."""

from __future__ import annotations

import json
import os

import pytest

from tests.processes import run_python

PROGRAM = """
import json, os, sys
import numpy as np
import bsplib

def main(bsp):
    x, many, large = bsp.zeros(8), bsp.zeros((8, 8)), bsp.zeros(1 << 17)
    bsp.sync()
    values, got, staged = np.ones(8), np.empty(8), np.ones(1 << 17)
    calls = {
        "put": lambda: bsp.put(0, values, x),
        "number": lambda: bsp.put(0, 3.0, x, offset=2),
        "list": lambda: bsp.put(0, [1.0, 2.0], x, offset=3),
        "slice": lambda: bsp.put(0, np.ones(4), x[2:6]),
        "column": lambda: bsp.put(0, values, many[:, 2]),
        "get": lambda: bsp.get(0, x, got),
        "send": lambda: bsp.send(0, values, 3),
        "hpput": lambda: bsp.hpput(0, values, x),
        "large put": lambda: bsp.put(0, staged, large),
    }
    return {name: walk(bsp, call) for name, call in calls.items()}

def walk(bsp, call):
    folder, files = os.path.dirname(bsplib.__file__) + os.sep, {}

    def note(frame, event, arg):
        files.setdefault(frame.f_code.co_filename)

    for is_known in (False, False, False, True):  # the array, and its memory; the line of the sync
        sys.settrace(note if is_known else None)
        call()
        bsp.sync()
    sys.settrace(None)
    inside = [name.removeprefix(folder) for name in files if name.startswith(folder)]
    return [name for name in inside if name != "core/atomics.py"]

if __name__ == "__main__":
    print(json.dumps(bsplib.run(main, nprocs=1, profile=sys.argv[1] if sys.argv[1:] else None)[0]))
"""


def walked(folder, *trace):
    program = folder / "walk.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "BSPLIB_CORE": "python"}
    done = run_python(program, *trace, env=environment, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    return walked(tmp_path_factory.mktemp("walk"))


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("transfer", "most"),
    [
        ("put", 4),
        ("number", 4),
        ("list", 4),
        ("slice", 5),
        ("column", 5),
        ("get", 5),
        ("send", 5),
        ("hpput", 4),
        ("large put", 6),
    ],
)
def test_a_transfer_enters_few_files(walks, transfer, most):
    assert len(walks[transfer]) <= most, walks[transfer]


@pytest.mark.lengthy
def test_a_transfer_stays_in_the_core_but_for_the_staged_values_of_others(walks):
    outside = {name for walk in walks.values() for name in walk if not name.startswith("core/")}
    assert outside == {"backends/shm/staging.py", "backends/shm/heap.py"}
    assert outside.intersection(walks["large put"]) == outside


@pytest.mark.lengthy
def test_a_recorded_superstep_enters_few_files(tmp_path):
    walk = walked(tmp_path, str(tmp_path / "trace.bsp"))["put"]
    assert len(walk) <= 6, walk


FIRST = """
import json, os, sys
import bsplib

FOLDER = os.path.dirname(bsplib.__file__) + os.sep

def entered(call):
    found = {}

    def note(frame, event, arg):
        if frame.f_code.co_filename.startswith(FOLDER):
            found.setdefault(frame.f_code)

    sys.settrace(note)
    try:
        call()
    except ZeroDivisionError:
        pass
    finally:
        sys.settrace(None)
    names = [(code.co_filename.removeprefix(FOLDER), code.co_qualname) for code in found]
    return [each for each in names if each[0] != "core/atomics.py"]

def main(bsp):
    bsp.sync()
    return entered(lambda: bsp.allreduce(1.0))

def fail(bsp):
    raise ZeroDivisionError

if __name__ == "__main__":
    both = bsplib.run(main, nprocs=2)
    print(json.dumps([both, entered(lambda: bsplib.run(fail, nprocs=2))]))
"""


@pytest.mark.lengthy
def test_a_first_allreduce_and_a_run_that_raises_enter_few_files(tmp_path):
    program = tmp_path / "first.py"
    program.write_text(FIRST)
    environment = {**os.environ, "BSPLIB_CORE": "python"}
    done = run_python(program, env=environment, check=True)
    both, raises = json.loads(done.stdout)
    walk = min(both, key=len)  # of the process that came last: the other one may have to wait
    assert len({file for file, _ in walk}) <= 8, walk
    assert len(walk) <= 60, walk
    assert len({file for file, _ in raises}) <= 15, raises
