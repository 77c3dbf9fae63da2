"""Words to and from many processes in one call, against the same in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib

SIZE = 23


def traffic_of(pid, nprocs, count=200):
    """What a process writes: pids, indices and values, with many duplicates."""
    rng = np.random.default_rng(pid)
    return rng.integers(nprocs, size=count), rng.integers(SIZE, size=count), rng.random(count)


def expected_arrays(nprocs, op=None, start=0.0):
    """What all arrays hold after each process has written its traffic, word by word."""
    arrays = np.full((nprocs, SIZE), start)
    for source in range(nprocs):
        for pid, index, value in zip(*traffic_of(source, nprocs), strict=True):
            old = arrays[pid, index]
            arrays[pid, index] = value if op is None else op(old, value)
    return arrays


# -- put_at -------------------------------------------------------------------------------------


@pytest.mark.every_count
def test_words_arrive_and_of_duplicates_the_last_stays(run, nprocs):
    def main(bsp):
        x = bsp.zeros(SIZE)
        bsp.put_at(*traffic_of(bsp.pid, bsp.nprocs), x)
        before = x.any()
        bsp.sync()
        return bool(before), x.tolist()

    expected = expected_arrays(nprocs)
    assert run(main) == [(False, array.tolist()) for array in expected]


@pytest.mark.parametrize(
    "op", [np.add, np.maximum, np.multiply, np.subtract], ids=lambda op: op.__name__
)
def test_words_are_combined_into_what_is_there_in_order(run, nprocs, op):
    def main(bsp):
        x = bsp.zeros(SIZE)
        x[:] = 0.5
        bsp.put_at(*traffic_of(bsp.pid, bsp.nprocs), x, op=op)
        bsp.sync()
        return x.tolist()

    assert run(main) == expected_arrays(nprocs, op, 0.5).tolist()


def test_the_three_arguments_broadcast_against_each_other(run, nprocs):
    def main(bsp):
        x = bsp.zeros((4, 3), int)
        everybody = np.arange(bsp.nprocs)
        bsp.put_at(everybody, 0, 5, x)  # one word to each
        bsp.put_at(everybody[:, None], [[1, 2]], [[10, 20]], x)  # a pair to each
        bsp.put_at(0, 3, [[1], [2], [3]], x, op=np.add)  # three words to one place
        bsp.put_at(bsp.nprocs - 1, np.array([4, 5]), 7, x)
        bsp.put_at(np.int8(0), np.uint16(6), np.int32(9), x)
        bsp.sync()
        return x.reshape(-1).tolist()

    results = run(main)
    for pid, result in enumerate(results):
        first, last = pid == 0, pid == nprocs - 1
        expected = [5, 10, 20, 6 * nprocs * first, 7 * last, 7 * last, 9 * first]
        assert result == expected + [0] * 5


def test_put_at_copies_at_the_call(bsp):
    x = bsp.zeros(500, int)
    pids, indices, values = np.full(500, bsp.pid), np.arange(500), np.arange(500)
    bsp.put_at(pids, indices, values, x)
    pids[:], indices[:], values[:] = 0, 0, -1
    bsp.sync()
    assert x.tolist() == list(range(500))


@pytest.mark.parametrize("order", ["C", "F"])
def test_indices_count_in_c_order_whatever_the_array_is_like(run, order):
    def main(bsp):
        x = np.zeros((3, 5), int, order=order)
        bsp.push_reg(x)
        bsp.sync()
        bsp.put_at(bsp.pid, np.arange(15), np.arange(15), x)
        bsp.put_at(bsp.pid, [14, 14], 100, x, op=np.add)
        got = bsp.get_at(bsp.pid, [1, 5], x)
        bsp.sync()
        again = bsp.get_at((bsp.pid + 1) % bsp.nprocs, [1, 5, 14], x)
        bsp.sync()
        return got.tolist(), x.tolist(), again.tolist()

    expected = np.arange(15).reshape(3, 5)
    expected[2, 4] += 200
    assert all(result == ([0, 0], expected.tolist(), [1, 5, 214]) for result in run(main))


@pytest.mark.procs(least=2)
def test_a_process_without_the_array_may_write_into_those_of_others(run, nprocs):
    def main(bsp):
        x = bsp.push_reg(None if bsp.pid == 0 else np.zeros(9, int))
        bsp.sync()
        bsp.put_at(1, bsp.pid, bsp.pid + 1, x)
        got = bsp.get_at(1, [8], x)
        bsp.sync()
        return got.tolist(), None if bsp.pid == 0 else x.tolist()

    results = run(main)
    assert results[0] == ([0], None)
    assert results[1] == ([0], [pid + 1 for pid in range(nprocs)] + [0] * (9 - nprocs))


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.RegistrationError, match="put_at: process 1 registered None there")
def test_a_process_that_registered_none_cannot_be_written_to(bsp):
    x = bsp.push_reg(None if bsp.pid == 1 else np.zeros(4))
    bsp.sync()
    bsp.put_at([0, 1], 0, 1.0, x)


# -- get_at -------------------------------------------------------------------------------------


def test_words_are_read_in_the_shape_of_the_arguments(bsp):
    x = bsp.array(1000 * bsp.pid + np.arange(SIZE))
    rng = np.random.default_rng(bsp.pid)
    pids, indices = rng.integers(bsp.nprocs, size=(7, 1)), rng.integers(SIZE, size=(2, 1, 9))
    bsp.sync()
    got = bsp.get_at(pids, indices, x)
    bsp.sync()
    assert got.dtype == x.dtype
    assert got.tolist() == (1000 * pids + indices).tolist()


def test_words_are_read_into_the_array_that_is_given(bsp):
    x = bsp.array(np.arange(10) + 100 * bsp.pid)
    bsp.sync()
    whole = np.zeros((4, 6))
    out = whole[::2, 1:4]
    returned = bsp.get_at(0, [[1, 2, 3], [9, 0, 0]], x, out)
    untouched = not whole.any()
    bsp.sync()
    assert returned is out
    assert untouched
    assert out.tolist() == [[1, 2, 3], [9, 0, 0]]
    assert whole.sum() == 15.0


def test_the_indices_of_get_at_are_copied_at_the_call(bsp):
    x = bsp.array(np.arange(500))
    bsp.sync()
    indices = np.arange(500)
    got = bsp.get_at(0, indices, x)
    indices[:] = 0
    bsp.sync()
    assert got.tolist() == list(range(500))


def test_a_register_of_many_kinds_of_values_is_read_and_written(run):
    kinds = [np.bool_, np.int8, np.float32, np.complex128, "datetime64[s]", "S3", ">f8"]

    def main(bsp):
        fits = []
        for kind in kinds:
            values = np.array([0, 1, 1], "i8").astype(kind)
            x = bsp.zeros(3, kind)
            bsp.put_at((bsp.pid + 1) % bsp.nprocs, [2, 1, 0], values, x)
            bsp.sync()
            got = bsp.get_at(0, [0, 1, 2], x)
            bsp.sync()
            fits.append(got.dtype == x.dtype and (got == values[::-1]).all())
        return all(fits)

    assert all(run(main))


# -- nothing at all -------------------------------------------------------------------------------


def test_no_words_are_legal_and_do_nothing(bsp):
    x = bsp.zeros(3)
    bsp.put_at([], [], [], x)
    bsp.put_at(0, [], 1.0, x)
    bsp.put_at(np.zeros((0, 2), int), 1, 1.0, x, op=np.add)
    first, second = bsp.get_at([], [], x), bsp.get_at(0, np.zeros((2, 0), int), x)
    bsp.sync()
    bsp.oblsync(0)
    assert (x.tolist(), first.shape, second.shape) == ([0, 0, 0], (0,), (2, 0))


# -- what is refused ------------------------------------------------------------------------------


def integers(*numbers):
    return np.array(numbers, np.uint64 if max(numbers) >= 2**63 else np.int64)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("made", ["before", "just now"])
@pytest.mark.parametrize("operation", ["put_at", "get_at"])
@pytest.mark.parametrize(
    ("index", "words"),
    [
        (-1, "index -1 is negative"),
        (0, None),
        (9, None),
        (10, r"1 of 3 indices fall outside the array on process 0 \(index 10, size 10\)"),
        (2**62, rf"1 of 3 indices fall outside .* \(index {2**62}, size 10\)"),
        (2**63, f"index {2**63} is larger than any array"),
    ],
)
def test_indices_are_0_to_the_last(run, operation, index, words, made):
    def main(bsp):
        x = bsp.zeros((2, 5))
        if made == "before":
            bsp.sync()
        if operation == "put_at":
            bsp.put_at(0, integers(0, index, 3), 1.0, x)
        else:
            bsp.get_at(0, integers(0, index, 3), x)
        bsp.sync()

    if words is None:
        run(main)
        return
    with pytest.raises(bsplib.BoundsError, match=rf"^{operation}: {words}.* \[process 0, superst"):
        run(main)


@pytest.mark.procs(3)
@pytest.mark.parametrize("pid", [-1, 3, 1 << 16, 1 << 40, 1 << 63])
@pytest.mark.parametrize("operation", ["put_at", "get_at"])
@pytest.mark.raises(
    bsplib.ProcessRangeError,
    match=lambda operation, pid: (
        rf"{operation}: there is no process {pid} among 3 \(0 to 2\) \[process 0, "
    ),
)
def test_pids_are_those_of_the_group(bsp, operation, pid):
    x = bsp.zeros(4)
    if operation == "put_at":
        bsp.put_at(integers(0, pid), 1, 1.0, x)
    else:
        bsp.get_at(integers(0, pid), 1, x)


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.BoundsError, match=r"put: index 4 from process \d lie outside")
def test_an_index_beyond_an_array_is_found_in_an_oblivious_superstep_too(bsp):
    x = bsp.zeros(4)
    bsp.put_at(bsp.pid, 4, 1.0, x)
    bsp.oblsync(1)


def refusals():
    x = np.zeros(4)
    return {
        "shapes": (
            lambda bsp, x: bsp.put_at([0, 0], [1, 2, 3], 1.0, x),
            bsplib.PlaceError,
            r"put_at: arguments of shapes \(2,\), \(3,\), \(\) do not go together",
        ),
        "values": (
            lambda bsp, x: bsp.put_at(0, 1, 1j, x),
            bsplib.DtypeError,
            "put_at: values of dtype complex128 cannot be cast to dtype float64",
        ),
        "pids": (
            lambda bsp, x: bsp.put_at([0.0], [1], 1.0, x),
            bsplib.PlaceError,
            "put_at: pids are integers, not float64",
        ),
        "indices": (
            lambda bsp, x: bsp.put_at(0, [1.0], 1.0, x),
            bsplib.PlaceError,
            "put_at: indices are integers, not float64",
        ),
        "truth": (
            lambda bsp, x: bsp.get_at(0, [True, False], x),
            bsplib.PlaceError,
            "get_at: indices are integers, not bool",
        ),
        "a view": (
            lambda bsp, x: bsp.put_at(0, 0, 1.0, x[1:]),
            bsplib.PlaceError,
            r"put_at: indices count from the start .* name the array, not a view of shape \(3,\)",
        ),
        "not registered": (
            lambda bsp, _: bsp.put_at(0, 0, 1.0, x),
            bsplib.RegistrationError,
            "put_at: the array is not registered; push_reg it first",
        ),
        "no array": (
            lambda bsp, _: bsp.get_at(0, 0, [1, 2]),
            bsplib.RegistrationError,
            "get_at: the array is not registered",
        ),
        "no ufunc": (
            lambda bsp, x: bsp.put_at(0, 0, 1.0, x, op=max),
            bsplib.DtypeError,
            "put_at: op is a binary ufunc such as numpy.add, not <built-in function max>",
        ),
        "unary ufunc": (
            lambda bsp, x: bsp.put_at(0, 0, 1.0, x, op=np.sin),
            bsplib.DtypeError,
            "put_at: op is a binary ufunc",
        ),
        "ufunc of others": (
            lambda bsp, x: bsp.put_at(0, 0, 1.0, x, op=np.bitwise_or),
            bsplib.DtypeError,
            "put_at: .*bitwise_or.* cannot combine values of float64",
        ),
        "shape of out": (
            lambda bsp, x: bsp.get_at(0, [0, 1], x, np.zeros(3)),
            bsplib.PlaceError,
            r"get_at: the destination has shape \(3,\), what is named has shape \(2,\)",
        ),
        "dtype of out": (
            lambda bsp, x: bsp.get_at(0, [0, 1], x, np.zeros(2, int)),
            bsplib.DtypeError,
            "get_at: values of dtype float64 cannot be cast to dtype int64",
        ),
        "read-only out": (
            lambda bsp, x: bsp.get_at(0, [0, 1], x, np.broadcast_to(0.0, 2)),
            bsplib.PlaceError,
            "get_at: the destination ndarray is no writable array",
        ),
    }


REFUSALS = refusals()


@pytest.mark.procs(2)
@pytest.mark.raises(bsplib.DtypeError, match=r"put_at: .*add.* makes <U6 of <U3, which is not")
def test_strings_that_would_be_cut_when_they_are_combined_are_refused(bsp):
    x = bsp.zeros(1, "U3")
    bsp.sync()
    bsp.put_at(0, 0, "cd", x, op="sum")


@pytest.mark.procs(2)
@pytest.mark.parametrize(("call", "error", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_call_that_names_no_words_is_refused(run, call, error, words):
    def main(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        call(bsp, x)

    with pytest.raises(error, match=rf"^{words}.* \[process 0, superstep 1, test_irregular.py:\d+"):
        run(main)


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.RegistrationError, match="takes effect at the next sync")
def test_a_pushed_array_takes_words_from_the_next_superstep_on(bsp):
    x = np.zeros(4)
    bsp.push_reg(x)
    bsp.put_at(0, 0, 1.0, x)


# -- what it counts -------------------------------------------------------------------------------


def test_for_an_oblsync_there_is_one_message_a_destination(bsp):
    x = bsp.zeros(100, int)
    bsp.sync()
    everybody = np.repeat(np.arange(bsp.nprocs), 50)
    bsp.put_at(everybody, np.tile(np.arange(50), bsp.nprocs), 1, x, op=np.add)
    bsp.put_at(bsp.pid, [60, 61], 5, x)
    bsp.oblsync(bsp.nprocs + 1)
    assert (int(x[:50].sum()), x[60:62].tolist()) == (50 * bsp.nprocs, [5, 5])


# -- hp-transfers ---------------------------------------------------------------------------------


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("operation", ["hpput", "hpget"])
@pytest.mark.raises(
    bsplib.BoundsError,
    match=lambda operation: rf"^{operation}: 1 of 1 elements fall outside 'x' on process 0",
)
def test_errors_of_hp_transfers_say_hp(bsp, operation):
    x = bsp.zeros(4)
    bsp.sync()
    if operation == "hpput":
        bsp.hpput(0, np.zeros(1), x, offset=4)
    else:
        bsp.hpget(0, x, np.zeros(1), offset=4)


# -- scope ----------------------------------------------------------------------------------------


def test_arrays_of_a_scope_live_until_the_sync_after_it(bsp):
    kept = bsp.zeros(2, int)
    with bsp.scope():
        x = bsp.zeros(bsp.nprocs, int)
        y = bsp.array([bsp.pid])
        bsp.put_at(np.arange(bsp.nprocs), bsp.pid, bsp.pid, x)
        bsp.sync()
        got = bsp.get_at(np.arange(bsp.nprocs), 0, y)
        bsp.put(bsp.pid, x[:1], kept)
    bsp.sync()
    bsp.put_at(bsp.pid, [1], 5, kept)  # it is still there
    bsp.sync()
    assert (got.tolist(), kept.tolist()) == (list(range(bsp.nprocs)), [0, 5])


@pytest.mark.raises(bsplib.RegistrationError, match="put_at: the array is not registered")
def test_an_array_of_a_scope_is_not_registered_after_it(bsp):
    with bsp.scope():
        x = bsp.zeros(3)
    bsp.sync()
    bsp.put_at(0, 0, 1.0, x)


def test_scopes_nest_and_let_pop_reg_and_errors_pass(bsp):
    with bsp.scope():
        outer = bsp.zeros(3, int)
        with bsp.scope():
            inner = bsp.zeros(3, int)
            bsp.pop_reg(inner)
        bsp.sync()
        bsp.put_at(bsp.pid, 0, 1, outer)
        bsp.sync()
        first = int(outer[0])
    try:
        with bsp.scope():
            bsp.zeros(3)
            raise KeyError  # noqa: TRY301  # what is tested
    except KeyError:
        pass
    bsp.sync()
    assert first == 1


# -- index arrays for axes, and whole rows ---------------------------------------------------------


def grid():
    return np.arange(12, dtype=np.int64).reshape(4, 3)


@pytest.mark.procs(1, 2, 3)
def test_a_tuple_of_index_arrays_names_elements_by_their_axes(run, nprocs):
    pids = np.arange(4) % nprocs
    rows, columns = np.array([3, 0, 1, 2]), np.array([0, 2, 1, 0])

    def main(bsp):
        x = bsp.array(grid() + 100 * bsp.pid)
        bsp.sync()
        got = bsp.get_at(pids, (rows, columns), x)
        if bsp.pid == 0:
            bsp.put_at(pids, (rows, columns), [-1, -2, -3, -4], x)
        bsp.sync()
        return got.tolist(), x.tolist()

    expected = [grid() + 100 * pid for pid in range(nprocs)]
    got = [
        int(expected[pid][row, column])
        for pid, row, column in zip(pids, rows, columns, strict=True)
    ]
    for value, pid, row, column in zip((-1, -2, -3, -4), pids, rows, columns, strict=True):
        expected[pid][row, column] = value
    assert run(main) == [(got, expected[pid].tolist()) for pid in range(nprocs)]


@pytest.mark.procs(1, 2, 3)
@pytest.mark.parametrize("one", [False, True], ids=["many processes", "one process"])
def test_fewer_index_arrays_than_axes_name_whole_rows(run, nprocs, one):
    rows = np.array([2, 0, 3])
    pids = nprocs - 1 if one else np.arange(3) % nprocs

    def main(bsp):
        x = bsp.array(grid() + 100 * bsp.pid)
        bsp.sync()
        got = bsp.get_at(pids, (rows,), x)
        if bsp.pid == 0:
            bsp.put_at(pids, (rows,), -np.arange(9).reshape(3, 3), x)
        bsp.sync()
        return got.tolist(), x.tolist()

    there = np.broadcast_to(pids, 3)
    expected = [grid() + 100 * pid for pid in range(nprocs)]
    got = [expected[pid][row].tolist() for pid, row in zip(there, rows, strict=True)]
    for number, (pid, row) in enumerate(zip(there, rows, strict=True)):
        expected[pid][row] = -np.arange(3 * number, 3 * number + 3)
    assert run(main) == [(got, expected[pid].tolist()) for pid in range(nprocs)]


@pytest.mark.procs(1, 3)
def test_a_single_row_and_a_single_value_are_broadcast(run):
    def main(bsp):
        x = bsp.zeros((2, 3), int)
        y = bsp.zeros((2, 3), int)
        if bsp.pid == 0:
            bsp.put_at(range(bsp.nprocs), (1,), [4, 5, 6], x)
            bsp.put_at(0, ([0, 1],), 7, y, op="sum")
        bsp.sync()
        got = bsp.get_at(0, (1,), x)
        bsp.sync()
        return x.tolist(), got.tolist(), int(y.sum()) if bsp.pid == 0 else 42

    assert set(map(str, run(main))) == {str(([[0, 0, 0], [4, 5, 6]], [4, 5, 6], 42))}


@pytest.mark.procs(2, 3)
def test_index_arrays_count_in_the_shape_there(bsp):
    x = bsp.zeros((2, 2 + bsp.pid), int)
    bsp.sync()
    everyone = np.arange(bsp.nprocs)
    if bsp.pid == 0:
        bsp.put_at(everyone, (1, everyone + 1), everyone + 5, x)
    bsp.sync()
    got = bsp.get_at(everyone, (1, everyone + 1), x)
    bsp.sync()
    assert x[1, -1] == 5 + bsp.pid
    assert x.sum() == 5 + bsp.pid
    assert got.tolist() == [5 + k for k in range(bsp.nprocs)]


@pytest.mark.procs(1, 3)
def test_index_arrays_may_name_arrays_made_in_this_superstep(bsp):
    x = bsp.zeros((2, 3), int)
    bsp.put_at(0, ([0, 1], [2, 1]), [5, 6], x)
    bsp.sync()
    if bsp.pid == 0:
        assert x.tolist() == [[0, 0, 5], [0, 6, 0]]


@pytest.mark.procs(2, 3)
@pytest.mark.raises(bsplib.BoundsError, match=r"shape \(2, 4\) on process 1, .* sync before")
def test_an_array_made_in_this_superstep_with_another_shape_there_is_an_error(bsp):
    x = bsp.zeros((2, 3 + bsp.pid), int)
    if bsp.pid == 0:
        bsp.put_at(1, (0, 1), 5, x)
    bsp.sync()


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("indices", "kind", "words"),
    [
        (((), ()), "Place", None),
        ((), "Place", "empty tuple; it has an index for each axis"),
        ((0, 0, 0), "Place", "3 index arrays are given for an array of 2 axes"),
        ((slice(2), 0), "Place", r"integers or arrays of them, not slice\(None, 2, None\)"),
        (([0.5], 0), "Place", "not an array of float64"),
        (([0, 1], [0, 1, 2]), "Place", r"shapes .* do not go together"),
        ((-1, 0), "Bounds", "index -1 on axis 0 is negative"),
        (([0, 4, 5], 0), "Bounds", r"2 of 3 .*process 1 \(index 4 on axis 0, size 4\)"),
        ((0, [0, 3]), "Bounds", r"1 of 2 .*process 1 \(index 3 on axis 1, size 3\)"),
        (([4],), "Bounds", r"index 4 on axis 0, size 4"),
    ],
    ids=str,
)
@pytest.mark.parametrize("alike", [True, False])
def test_wrong_indices_of_axes_are_errors(run, indices, kind, words, alike):
    def main(bsp):
        x = bsp.zeros((4, 3) if alike or bsp.pid else (9, 9))
        bsp.sync()
        bsp.get_at(1, indices, x)
        bsp.sync()

    if words is None:  # no elements
        run(main)
        return
    with pytest.raises(getattr(bsplib, f"{kind}Error"), match=f"get_at: .*{words}"):
        run(main)


@pytest.mark.procs(2)
def test_rows_for_single_elements_of_a_matrix_are_an_error_and_not_broadcast(run):
    def main(bsp):
        x = bsp.zeros((4, 2))
        bsp.put_at(0, [0, 3], [[1, 2], [3, 4]], x)

    words = r"values of shape \(2, 2\) are given for 2 single elements .* by a tuple, \(rows,\)"
    with pytest.raises(bsplib.PlaceError, match=words):
        run(main)


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("pids", "kind", "words"),
    [
        (2, "ProcessRange", "no process 2 among 2"),
        ([0, 5], "ProcessRange", "no process 5 among 2"),
        (0.5, "Place", "pids are integers"),
        ([0, 1], "Place", r"sub-arrays of shapes \[\(3,\), \(9,\)\] cannot be named in one call"),
    ],
)
def test_wrong_processes_of_rows_are_errors(run, pids, kind, words):
    def main(bsp):
        x = bsp.zeros((4, 3) if bsp.pid else (9, 9))
        bsp.sync()
        bsp.get_at(pids, (0,), x)

    with pytest.raises(getattr(bsplib, f"{kind}Error"), match=words):
        run(main)
