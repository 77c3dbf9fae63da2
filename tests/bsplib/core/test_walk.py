"""How many files a reader enters who follows a transfer from its call to its destination."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys
import numpy as np
import bsplib

def main(bsp):
    x, many = bsp.zeros(8), bsp.zeros((8, 8))
    bsp.sync()
    values, got = np.ones(8), np.empty(8)
    calls = {
        "put": lambda: bsp.put(0, values, x),
        "number": lambda: bsp.put(0, 3.0, x, offset=2),
        "list": lambda: bsp.put(0, [1.0, 2.0], x, offset=3),
        "slice": lambda: bsp.put(0, np.ones(4), x[2:6]),
        "column": lambda: bsp.put(0, values, many[:, 2]),
        "get": lambda: bsp.get(0, x, got),
        "send": lambda: bsp.send(0, values, 3),
        "hpput": lambda: bsp.hpput(0, values, x),
    }
    return {name: walk(bsp, call) for name, call in calls.items()}

def walk(bsp, call):
    for _ in range(3):  # the array is known, and its memory is there
        call()
        bsp.sync()
    folder, files = os.path.dirname(bsplib.__file__) + os.sep, {}

    def note(frame, event, arg):
        files.setdefault(frame.f_code.co_filename)

    sys.settrace(note)
    call()
    bsp.sync()
    sys.settrace(None)
    inside = [name.removeprefix(folder) for name in files if name.startswith(folder)]
    return [name for name in inside if name != "core/atomics.py"]

if __name__ == "__main__":
    print(json.dumps(bsplib.run(main, nprocs=1)[0]))
"""


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    program = tmp_path_factory.mktemp("walk") / "walk.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    environment = {**os.environ, "BSPLIB_CORE": "python"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


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
    ],
)
def test_a_transfer_enters_few_files(walks, transfer, most):
    assert len(walks[transfer]) <= most, walks[transfer]


def test_a_transfer_stays_in_the_core(walks):
    assert {name.split("/")[0] for walk in walks.values() for name in walk} == {"core"}
