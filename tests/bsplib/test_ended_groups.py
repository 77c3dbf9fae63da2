"""A group is used in its run, and its attributes are read; see :mod:`.random_programs.lives`."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import bsplib

from .random_programs.lives import PRIMITIVES

kept = []
"""Groups that programs leave behind, by process."""


@pytest.fixture(autouse=True)
def nothing_kept():
    """Leave no group behind: a program that finds one cannot be sent to processes."""
    yield
    kept.clear()


def keep(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.put(0, 1.0, x, offset=0)  # the array is known
    bsp.sync()
    return bsp, x


def use(name, old):
    with pytest.raises(
        bsplib.PartitionError, match=rf"^{name}: this group cannot be used: its run has ended"
    ):
        PRIMITIVES[name](*old)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_the_group_of_a_run_that_has_ended_cannot_be_used_in_the_simulator(name):
    def main(bsp):
        kept[:] = [keep(bsp)]

    bsplib.run(main, nprocs=2, backend="sim")
    use(name, kept[0])
    assert kept[0][0].nprocs == 2  # can be read still


@pytest.mark.procs(2)
def test_a_sub_group_that_an_exception_left_open_ends_with_the_run():
    def main(bsp):
        kept[:] = [(bsp.partition([2]), None)]
        raise KeyError

    with pytest.raises(KeyError):
        bsplib.run(main, nprocs=2, backend="sim")
    use("sync", kept[0])


def test_another_virtual_processor_cannot_use_a_group():
    def main(bsp):
        kept.append(bsp)
        bsp.sync()
        kept[0].sync()

    with pytest.raises(
        bsplib.UsageError, match=r"sync: the group of process \d is used by another"
    ):
        bsplib.run(main, nprocs=2, backend="sim")


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", ["pid", "nprocs", "machine"])
def test_attributes_can_be_read_only(run, name):
    def main(bsp):
        with pytest.raises(AttributeError, match=name):
            setattr(bsp, name, 3)
        with bsp.partition([bsp.nprocs]) as sub:
            assert getattr(sub, name) == getattr(bsp, name)
        return bsp.pid

    assert run(main) == list(range(len(run(main))))


def test_a_group_is_freed_with_its_arrays_as_soon_as_nobody_has_it():
    groups = []

    def main(bsp):
        bsp.zeros(8)
        bsp.sync()
        with bsp.partition([bsp.nprocs]) as sub:
            sub.put(0, np.ones(3), sub.zeros(3))
            sub.sync()
            groups.append(weakref.ref(sub))
        groups.append(weakref.ref(bsp))

    gc.disable()
    try:
        bsplib.run(main, nprocs=2, backend="sim")
        assert [group() for group in groups] == [None] * 4
    finally:
        gc.enable()
