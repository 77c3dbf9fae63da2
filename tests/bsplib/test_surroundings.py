"""Warnings, the guard of a script, and copies that are taken for the registered array."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from tests.processes import run_python

pytestmark = pytest.mark.fresh

WARNS = """
    import sys, warnings
    import bsplib

    def main(bsp):
        warnings.warn(f"old way of process {bsp.pid}", DeprecationWarning, stacklevel=1)

    if __name__ == "__main__":
        bsplib.run(main, nprocs=2, start_method=sys.argv[1])
"""
METHODS = ("fork", "forkserver", "spawn")


def execute(path, *args, options=()):
    return run_python(*options, path, *args)


@pytest.mark.parametrize("method", METHODS)
def test_a_deprecation_in_a_process_is_an_error_if_that_is_asked_for(script, method):
    done = execute(script(WARNS), method, options=["-W", "error::DeprecationWarning"])
    assert done.returncode == 1
    assert "DeprecationWarning: old way of process 0" in done.stderr
    assert "[process 0, superstep 0, script.py:6; 1 more process failed]" in done.stderr


def test_a_deprecation_in_a_forked_process_is_shown(script):
    done = execute(script(WARNS), "fork", options=["-W", "default::DeprecationWarning"])
    assert done.returncode == 0
    assert "DeprecationWarning: old way of process 1" in done.stderr
    assert "multi-threaded" not in done.stderr


READS = """
import os, sys
import bsplib

def main(bsp):
    return sys.stdin.read(), os.read(0, 10)

if __name__ == "__main__":
    print(bsplib.run(main, nprocs=2, start_method="fork"))
    print(sys.stdin.read())
"""


def test_the_standard_input_of_a_process_is_empty_and_that_of_its_caller_is_not(script):
    done = run_python(str(script(READS)), input="of the caller")
    assert (done.stdout, done.stderr) == ("[('', b''), ('', b'')]\nof the caller\n", "")


UNGUARDED = """
    import sys
    import bsplib

    def main(bsp):
        return bsp.pid

    print(CALL)
"""


RUN = "bsplib.run(main, nprocs=2, start_method=sys.argv[1])"
POOL = "bsplib.Pool(2, start_method=sys.argv[1]).run(main)"


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("spawn", RUN),
        ("forkserver", POOL),
        pytest.param("forkserver", RUN, marks=pytest.mark.slow),
        pytest.param("spawn", POOL, marks=pytest.mark.slow),
    ],
)
def test_a_script_without_the_guard_is_told_so(script, method, call):
    done = execute(script(UNGUARDED.replace("CALL", call)), method)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.rstrip().endswith(
        "bsplib.errors.UsageError: run: the script calls bsplib.run as it is imported, and each "
        'process that is not forked imports it; write the call below if __name__ == "__main__":'
    )


@pytest.mark.procs(2)
@pytest.mark.parametrize("copy", [lambda x: x + 1, lambda x: x[[0, 2]], lambda x: x[x > -1]])
def test_a_copy_of_a_registered_array_is_said_to_be_one(run, copy):
    def put(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        bsp.put(0, 1.0, copy(x))

    def get(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        x = copy(x)
        bsp.get(0, x, np.zeros(x.shape))

    for main, name, words in ((put, "the array of shape", "put_at"), (get, "x", "get_at")):
        with pytest.raises(
            bsplib.RegistrationError,
            match=rf"{main.__name__}: {name}.* is not in a registered array; push_reg it first\. "
            rf"Or was it made by x \+ 1 .* make a copy: write x\[:\] = x \+ 1, .* with {words} ",
        ):
            run(main)
