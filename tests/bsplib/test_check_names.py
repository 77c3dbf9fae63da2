"""What ``check=True`` sees of names: arrays in another order, and arrays that were replaced."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import bsplib
from bsplib import CheckWarning, SyncMismatchError

pytestmark = pytest.mark.procs(2, 3)


# -- the order of registrations --------------------------------------------------------------


def pushed(bsp, swapped):
    first, second = np.zeros(3), np.zeros(3)
    for array in (second, first) if swapped else (first, second):
        if array is first:
            bsp.push_reg(first)
        else:
            bsp.push_reg(second)
    return first, second


def allocated(bsp, swapped):
    if swapped:
        second = bsp.zeros(3)
        first = bsp.zeros(3)
    else:
        first = bsp.zeros(3)
        second = bsp.zeros(3)
    return first, second


@pytest.mark.parametrize("register", [pushed, allocated])
def test_arrays_that_are_registered_in_another_order_are_a_mismatch_under_check(run, register):
    def main(bsp):
        register(bsp, bsp.pid == 1)
        bsp.sync()

    words = r"registered '(first|second)' where this process registered '(first|second)', and both"
    with pytest.raises(SyncMismatchError, match=words) as caught:
        run(main, check=True)
    assert len(set(re.search(words, str(caught.value)).groups())) == 2
    assert str(caught.value).count("[process ") == 1


@pytest.mark.parametrize("register", [pushed, allocated])
def test_arrays_that_are_registered_in_one_order_are_fine(run, register):
    def main(bsp):
        first, second = register(bsp, swapped=False)
        bsp.sync()
        bsp.put(0, np.ones(3), first)
        bsp.sync()
        return float(second.sum())

    assert set(run(main)) == {0.0}
    with pytest.raises(bsplib.OverlapError):
        run(main, check=True)


def test_an_array_may_have_another_name_on_each_process(run):
    def main(bsp):
        if bsp.pid == 0:
            whole = bsp.zeros(9)
            bsp.sync()
            return whole.size
        part = bsp.zeros(3)
        bsp.sync()
        return part.size

    found = run(main, check=True)
    assert found == [9] + [3] * (len(found) - 1)


def test_names_are_not_compared_without_check(bsp):
    _, second = allocated(bsp, bsp.pid == 1)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, np.ones(3), second)
    bsp.sync()
    if bsp.pid == 1:
        assert second.tolist() == [0.0] * 3


# -- arrays that the program does not hold -----------------------------------------------------

MAKES = {
    "zeros": lambda bsp: bsp.zeros(3),
    "push_reg": lambda bsp: bsp.push_reg(np.zeros(3)),
    "empty": lambda bsp: bsp.empty(3),
    "full": lambda bsp: bsp.full(3, 1.0),
}
TRANSFERS = {
    "put": lambda bsp, x: bsp.put(0, np.ones(3), x),
    "hpput": lambda bsp, x: bsp.hpput(0, np.ones(3), x),
    "put_at": lambda bsp, x: bsp.put_at(0, [1], 5.0, x),
    "get": lambda bsp, x: bsp.get(0, x),
    "get_at": lambda bsp, x: bsp.get_at(0, [1], x),
}


def replacing(bsp, make, transfer, replaces):
    """Let process 1 name an array of process 0 that process 0 has replaced."""
    x = MAKES[make](bsp)
    bsp.sync()
    if bsp.pid == 1:
        TRANSFERS[transfer](bsp, x)
    if bsp.pid == 0 and replaces:
        x = x + 1
    bsp.sync()
    return x.shape


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_an_array_that_was_replaced_while_transfers_reach_it_is_warned_of(run, make, transfer):
    with pytest.warns(CheckWarning) as caught:
        run(replacing, make, transfer, True, check=True)
    (found,) = caught
    text = str(found.message)
    assert text.startswith(f"the array of process 0, from {make} at test_check_names.py:")
    assert f"is reached by {transfer} (test_check_names.py:" in text
    assert text.endswith("write x[...] = x + 1")


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_an_array_that_the_program_holds_is_not_warned_of(run, make, transfer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(replacing, make, transfer, False, check=True)


def test_without_check_nobody_warns_of_a_replaced_array(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(replacing, "zeros", "put", True)


HOLDS = {
    "a view": lambda x: x[1:],
    "a list": lambda x: [x],
    "a plain array": np.asarray,
    "a plain part": lambda x: np.asarray(x)[:1],
    "a memoryview": memoryview,
    "a closure": lambda x: lambda: x,
    "another shape": lambda x: x.reshape(3, 1),
}


@pytest.mark.parametrize("hold", HOLDS)
def test_an_array_may_be_held_in_any_way(run, hold):
    def main(bsp):
        x = bsp.zeros(3)
        y = np.zeros((3, 2))
        bsp.push_reg(y[:, 1])  # nobody but bsplib has this view
        bsp.sync()
        for _ in range(3):
            if bsp.pid == 1:
                bsp.put(0, np.ones(3), x)
                bsp.put(0, np.ones(3), y[:, 1])
            if bsp.pid == 0 and x is not None:
                held = HOLDS[hold](x)
                x = None
            bsp.sync()
        return y[0, 1], None if bsp.pid else held is not None

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(main, check=True)[0][0] == 1.0


def test_real_processes_warn_of_a_replaced_array(execute):
    done = execute(
        """
        import bsplib

        def main(bsp):
            x = bsp.zeros(1)
            bsp.sync()
            bsp.put(1, [2.0], x) if bsp.pid == 0 else None
            x = x + 1
            bsp.sync()

        if __name__ == "__main__":
            bsplib.run(main, nprocs=2, check=True)
        """
    )
    assert done.returncode == 0
    assert "script.py:9: CheckWarning: the array 'x' of process 1, from zeros at script.py:5" in (
        done.stderr
    )
    assert "is reached by put (script.py:7, process 0)" in done.stderr
