from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import bsplib


def fill(bsp, x, value=1):
    """Put a value into the first element of ``x`` on the right neighbour."""
    bsp.put((bsp.pid + 1) % bsp.nprocs, value, x, offset=0)


def test_a_registered_array_may_lie_in_any_memory(bsp):
    x = np.zeros(3)
    assert bsp.push_reg(x) is x
    bsp.sync()
    fill(bsp, x, 5)
    bsp.sync()
    assert x.tolist() == [5, 0, 0]


@pytest.mark.raises(
    bsplib.RegistrationError, match=r"put: the registration of x takes effect at the next sync"
)
def test_a_registration_takes_effect_at_the_next_sync(bsp):
    x = np.zeros(3)
    bsp.push_reg(x)
    fill(bsp, x)


@pytest.mark.procs(1, 3)
@pytest.mark.raises(
    bsplib.RegistrationError, match=r"get: x is not in a registered array; push_reg it first"
)
def test_an_array_that_was_never_registered_cannot_be_named(bsp):
    x = np.zeros((3, 2))
    bsp.get(0, x)


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: [1, 2], r"\[1, 2\] is no array \(list\)"),
        (lambda: 5, r"5 is no array \(int\)"),
        (lambda: np.frombuffer(b"12345678"), "a read-only array cannot be written to"),
        (lambda: np.broadcast_to(np.zeros(1), 3), "a read-only array cannot be written to"),
    ],
)
def test_only_writable_arrays_can_be_registered(run, made, words):
    with pytest.raises(bsplib.RegistrationError, match=rf"^push_reg: {words}"):
        run(lambda bsp: bsp.push_reg(made()))


@pytest.mark.procs(1, 3)
def test_arrays_of_python_objects_cannot_be_registered(run):
    with pytest.raises(bsplib.DtypeError, match=r"push_reg: dtype object"):
        run(lambda bsp: bsp.push_reg(np.array([None])))


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.DtypeError, match=r"'x' has dtype float64 here and dtype int32 on process 1"
)
def test_dtypes_that_differ_between_processes_are_named_at_the_transfer(bsp):
    x = np.zeros(3, np.int32 if bsp.pid else np.float64)
    bsp.push_reg(x)
    bsp.sync()
    bsp.put(1, 1, x, offset=0)
    bsp.sync()


def test_a_file_mapped_by_numpy_can_be_registered(bsp, tmp_path):
    x = np.memmap(tmp_path / str(bsp.pid), np.int64, "w+", shape=(4,))
    bsp.push_reg(x)
    bsp.sync()
    fill(bsp, x, 3)
    bsp.sync()
    assert np.asarray(x).tolist() == [3, 0, 0, 0]


# -- several registrations of one array -------------------------------------------------


@pytest.mark.procs(least=2)
def test_after_a_pop_the_registration_before_counts_again(bsp):
    x = np.zeros(4)
    bsp.push_reg(x[:2] if bsp.pid else x)
    bsp.push_reg(x)
    bsp.sync()
    bsp.pop_reg(x)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 2, x, offset=1)
        with pytest.raises(bsplib.BoundsError, match=r"offset 2 \+ 1 > size 2"):
            bsp.put(1, 2, x, offset=2)
    bsp.sync()
    if bsp.pid == 1:
        assert x.tolist() == [0, 2, 0, 0]


# -- taking back ------------------------------------------------------------------------


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("make", [lambda bsp: bsp.zeros(3), lambda bsp: bsp.push_reg(np.zeros(3))])
def test_a_popped_array_can_be_named_until_the_sync_and_not_after(bsp, make):
    x = make(bsp)
    bsp.sync()
    bsp.pop_reg(x)
    fill(bsp, x)
    bsp.sync()
    with pytest.raises(bsplib.RegistrationError, match=r"put: x is not in a registered array"):
        fill(bsp, x)


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("make", [lambda bsp: bsp.zeros(3), lambda bsp: bsp.push_reg(np.zeros(3))])
def test_push_and_pop_in_one_superstep_leave_nothing(bsp, make):
    x = make(bsp)
    bsp.pop_reg(x)
    bsp.sync()
    with pytest.raises(bsplib.RegistrationError, match=r"pop_reg: the array is not registered"):
        bsp.pop_reg(x)
    with pytest.raises(bsplib.RegistrationError, match=r"get: x is not in a registered array"):
        bsp.get(0, x)


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("made", ["never pushed", "a view", "popped as often as pushed"])
@pytest.mark.raises(
    bsplib.RegistrationError, match=r"^pop_reg: the array is not registered \[process 0, superstep"
)
def test_what_is_not_registered_cannot_be_popped(bsp, made):
    x = bsp.push_reg(np.zeros(4))
    bsp.push_reg(x)
    bsp.sync()
    if made == "popped as often as pushed":
        bsp.pop_reg(x)
        bsp.pop_reg(x)
    bsp.pop_reg({"never pushed": np.zeros(4), "a view": x[:2]}.get(made, x))


@pytest.mark.procs(1)
@pytest.mark.slow
def test_twenty_thousand_arrays_are_pushed_and_popped_in_any_order(run):
    """With a search for each of them, from either end, this would take minutes, not a second."""

    def main(bsp):
        room = np.zeros((20_000, 2))
        arrays = list(room)
        for x in arrays:
            bsp.push_reg(x)
        bsp.sync()
        for number in (0, 7, 19_999):
            bsp.put(0, [number, number], arrays[number])
        for x in (*arrays[:10_000], *reversed(arrays[10_000:])):
            bsp.pop_reg(x)
        bsp.sync()
        with pytest.raises(bsplib.RegistrationError, match="not registered"):
            bsp.pop_reg(arrays[7])
        return room[[0, 7, 19_999], 1].tolist()

    assert run(main) == [[0, 7, 19_999]]


@pytest.mark.procs(1)
@pytest.mark.lengthy
def test_hundreds_of_arrays_are_popped_one_a_superstep(run):
    def main(bsp):
        arrays = [np.zeros(1) for _ in range(300)]
        for x in arrays:
            bsp.push_reg(x)
        bsp.sync()
        for x, following in pairwise(arrays):
            bsp.pop_reg(x)
            bsp.put(0, 1.0, following)
            bsp.sync()
        return sum(x[0] for x in arrays)

    assert run(main) == [299]


@pytest.mark.procs(1, 3)
def test_an_array_whose_shape_has_changed_is_popped_by_its_identity(bsp):
    x = bsp.push_reg(np.zeros(6))
    bsp.sync()
    x.resize((2, 3), refcheck=False)
    bsp.pop_reg(x)
    bsp.sync()
    with pytest.raises(bsplib.RegistrationError, match="not registered"):
        bsp.pop_reg(x)


# -- None -------------------------------------------------------------------------------


@pytest.mark.procs(least=2)
def test_a_process_without_an_array_registers_none_and_transfers_through_a_stand_in(run, nprocs):
    def main(bsp):
        x = bsp.push_reg(np.zeros((2, bsp.nprocs), int) if bsp.pid == 0 else None)
        bsp.sync()
        bsp.put(0, bsp.pid, x, offset=bsp.pid)
        bsp.put(0, -bsp.pid, x, at=np.s_[1, bsp.pid])
        bsp.sync()
        mine = bsp.get(0, x, np.empty(2, int), offset=bsp.nprocs - 2)
        bsp.sync()
        return x.tolist() if bsp.pid == 0 else mine.tolist()

    results = run(main)
    assert results[0] == [list(range(nprocs)), [-pid for pid in range(nprocs)]]
    assert results[1:] == [[nprocs - 2, nprocs - 1]] * (nprocs - 1)


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.RegistrationError, match=r"put: process 1 registered None as 'x'")
def test_a_put_to_a_process_that_registered_none_is_an_error_that_names_it(bsp):
    x = bsp.push_reg(None if bsp.pid == 1 else np.zeros(3))
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 5, x, offset=0)


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.PlaceError, match=r"registered None there; give offset= or at=")
def test_a_stand_in_alone_names_no_place(bsp):
    x = bsp.push_reg(np.zeros(3) if bsp.pid == 0 else None)
    bsp.sync()
    if bsp.pid == 1:
        bsp.put(0, 5, x)


@pytest.mark.raises(bsplib.RegistrationError, match=r"not registered")
def test_a_stand_in_is_popped_like_an_array(bsp):
    x = bsp.push_reg(None)
    bsp.sync()
    bsp.pop_reg(x)
    bsp.sync()
    bsp.pop_reg(x)


@pytest.mark.raises(bsplib.RegistrationError, match=r"takes effect at the next sync")
def test_a_stand_in_cannot_be_named_before_the_sync(bsp):
    x = bsp.push_reg(None)
    bsp.put(0, 1, x, offset=0)


# -- doing the same on all processes ------------------------------------------------------


def pop(bsp, x):
    bsp.pop_reg(x)


def push(bsp, x):
    bsp.push_reg(np.zeros(2))


COUNTED = r"process \d made [01] registrations and removals in this superstep, and this one made"
"""What either process says, and the error of one of them is that of the run."""
MISMATCHES = {
    "a push of process 0 alone": ([push], [], COUNTED),
    "a push missing on process 0": ([], [push], COUNTED),
    "a pop missing on process 0": ([], [pop], COUNTED),
    "another order": ([push, pop], [pop, push], "process 1 called pop_reg .* process called push"),
}


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("ends", [False, True], ids=["sync", "end of main"])
@pytest.mark.parametrize("case", MISMATCHES)
@pytest.mark.raises(
    bsplib.SyncMismatchError,
    match=lambda case: rf"{MISMATCHES[case][2]}.*\[process \d, superstep 1, (test_reg|end of main)",
)
def test_registrations_that_differ_are_a_mismatch(bsp, case, ends):
    x = bsp.zeros(3)
    bsp.sync()
    for act in MISMATCHES[case][min(bsp.pid, 1)]:
        act(bsp, x)
    if not ends:
        bsp.sync()


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.SyncMismatchError,
    match=r"process 1 called pop_reg of registration 1 where this process called pop_reg of "
    "registration 0",
)
def test_pops_that_mean_different_registrations_are_a_mismatch(bsp):
    x, y = bsp.zeros(3), bsp.zeros(3)
    bsp.sync()
    bsp.pop_reg(x if bsp.pid == 0 else y)
    bsp.sync()


@pytest.mark.procs(4, 8)
@pytest.mark.raises(bsplib.SyncMismatchError, match=r"\[process 2, superstep 0, test_regist")
def test_a_mismatch_in_a_sub_group_is_found_there(bsp):
    with bsp.partition([2, bsp.nprocs]) as sub:
        if bsp.pid == 2:
            sub.push_reg(np.zeros(3))
        sub.sync()


# -- groups ---------------------------------------------------------------------------------


@pytest.mark.raises(bsplib.RegistrationError, match=r"put: x is not in a registered array")
def test_an_array_of_the_parent_cannot_be_named_in_a_sub_group(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    with bsp.partition([bsp.nprocs]) as sub:
        sub.put(0, 1, x)


def test_an_array_of_the_parent_may_be_registered_in_a_sub_group_too(bsp):
    x = bsp.zeros(2)
    bsp.sync()
    with bsp.partition([bsp.nprocs]) as sub:
        sub.push_reg(x)
        sub.sync()
        fill(sub, x, 8)
        sub.sync()
    bsp.put(bsp.pid, 9, x, offset=1)
    bsp.sync()
    assert x.tolist() == [8, 9]
