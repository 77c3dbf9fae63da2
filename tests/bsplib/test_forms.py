"""What is remembered of a value depends on nothing that its form leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.transfers.registry import Clusters
from tests import drawn

from .neighbours import right
from .random_programs import forms

# Newer versions of numpy warn of what these programs do to an array in place.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the .* on a NumPy array:DeprecationWarning")


def test_an_array_names_what_it_still_is_of_its_registration_when_its_shape_has_changed(run):
    def main(bsp):
        x = bsp.push_reg(np.zeros(64))
        bsp.sync()
        bsp.put(right(bsp), np.ones(32), x[::2])
        bsp.sync()
        x.shape = (2, 2, 2, 2, 4)
        for number in range(50):
            values = np.full((2, 2, 2, 2, 4), float(number))
            bsp.put(right(bsp), values, x)
            with pytest.raises(bsplib.PlaceError):
                bsp.put(right(bsp), values, x[::-1, ::-1, ::-1, ::-1, ::-1])
            bsp.put(right(bsp), 5.0, x, offset=63)
            with pytest.raises(bsplib.BoundsError):  # the array there has one axis
                bsp.put(right(bsp), np.zeros(64), x, at=np.s_[0, 0])
            bsp.sync()
        return x.reshape(-1).tolist()

    assert set(map(tuple, run(main))) == {(*[49.0] * 63, 5.0)}


@pytest.mark.not_on_mpi("its ranks keep arrays as the processes of shm do")
def test_an_array_of_the_last_run_of_a_pool_names_no_array_of_this_one(backend):
    with bsplib.Pool(2, backend=backend) as pool:
        pool.run(keep_an_array)
        assert pool.run(put_to_the_kept_array) == ["RegistrationError"] * 2


KEPT = []


def keep_an_array(bsp):
    KEPT[:] = [*KEPT, bsp.zeros(8)][-2:]
    bsp.sync()


def put_to_the_kept_array(bsp):
    x = bsp.zeros(8)
    bsp.sync()
    bsp.put(right(bsp), 1.0, x, offset=0)
    bsp.sync()
    found = "nothing"
    for kept in (KEPT[0], KEPT[-1][2:4], KEPT[-1]):
        try:
            bsp.put(right(bsp), np.ones(kept.shape), kept)
        except bsplib.BspError as error:
            found = type(error).__name__
        else:
            return "taken"
    bsp.put(right(bsp), np.ones(2), np.frombuffer(x)[2:4])  # it is of this run, seen in another way
    bsp.sync()
    assert x.tolist() == [1, 0, 1, 1, 0, 0, 0, 0]
    return found


def test_an_array_that_was_freed_names_no_array_that_has_its_memory_now(bsp):
    x = bsp.zeros(8)
    bsp.sync()
    bsp.pop_reg(x)
    bsp.sync()
    bsp.zeros(8), bsp.zeros(8)
    bsp.sync()
    with pytest.raises(bsplib.RegistrationError):
        bsp.put(right(bsp), np.ones(8), x)


def test_other_operations_on_truth_values_give_truth_values(run, nprocs):
    def main(bsp):
        ones = np.ones(2, bool)
        bsp.allreduce(np.ones(2))
        found = [bsp.allreduce(x, op) for op in (np.logical_or, "max", "xor") for x in (True, ones)]
        return [(type(x), np.asarray(x).dtype.kind, np.any(x)) for x in found]

    one = nprocs % 2 == 1
    kinds = [(kind, "b", value) for value in (True, True, one) for kind in (bool, np.ndarray)]
    assert run(main) == [kinds] * nprocs


def test_a_put_that_adds_truth_values_adds_them_as_numpy_does(run):
    def main(bsp):
        x = bsp.zeros(2, bool)
        bsp.sync()
        bsp.put_at(right(bsp), [0, 0], [True, True], x, op=np.add)
        bsp.sync()
        return x.tolist()

    assert set(map(tuple, run(main))) == {(True, False)}


@pytest.mark.lengthy
@pytest.mark.procs(1, 2, 3)
def test_random_programs_find_every_form_as_it_was_sent(backend, nprocs):
    with bsplib.Pool(nprocs, backend=backend) as pool:
        for seed in range(drawn.times(8)):
            pool.run(forms.main, 100 * nprocs + seed, backend != "mpi")


def test_what_numpy_cannot_hold_is_an_error_in_a_sentence(bsp):
    x, many = bsp.push_reg(np.zeros(4)), np.zeros((1,) * 40)
    bsp.sync()
    with pytest.raises(bsplib.BoundsError, match="fall outside 'x'"):
        bsp.get(0, x, offset=0, count=2**60)
    new = bsp.zeros(4)
    with pytest.raises(bsplib.BoundsError, match="no array has"):
        bsp.get(0, new, offset=0, count=2**60)
    with pytest.raises(bsplib.BoundsError, match="do not broadcast"):
        bsp.put(0, 1.0, x.reshape((1,) * 40 + (4,)))
    with pytest.raises(bsplib.BoundsError, match="do not broadcast"):
        bsp.put(0, many, x)
    with pytest.raises(bsplib.DtypeError, match="0 bytes"):
        bsp.push_reg(np.zeros(3, []))
    with pytest.raises(bsplib.DtypeError, match="0 bytes"):
        bsp.zeros(3, "S0")


@pytest.mark.lengthy
@pytest.mark.procs(1)
def test_thousands_of_registrations_are_found_one_by_one(run):
    def main(bsp):
        looked = 0
        every = [bsp.push_reg(np.zeros(2)) for _ in range(2000)]
        bsp.sync()
        near = Clusters.near

        def counted(self, low, high):
            nonlocal looked
            looked += len(found := near(self, low, high))
            return found

        Clusters.near = counted
        try:
            for x in every:
                bsp.put(0, 1.0, x, offset=1)
                bsp.put(0, np.ones(1), x[:1])
        finally:
            Clusters.near = near
        bsp.sync()
        return looked, sum(x.sum() for x in every)

    ((looked, total),) = run(main)
    assert looked < 20_000  # and not 2,000 for each of them
    assert total == 4000
