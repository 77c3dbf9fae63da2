from __future__ import annotations

import functools
import operator
import os

import numpy as np
import pytest

import bsplib
from bsplib.core.meeting import LARGE
from bsplib.machine import Machine
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace

from .neighbours import right

ONE_STAGE = Machine("all latency", "made up", g=0.0, l=1e-6)
TWO_STAGES = Machine("all bandwidth", "made up", g=1e-9, l=0.0)
BOTH = pytest.mark.parametrize("machine", [ONE_STAGE, TWO_STAGES], ids=lambda one: one.name)


def edge_at(nbytes, nprocs):
    """A Machine on which two stages pay for more than ``nbytes``; exact in floats."""
    g = 2.0**-30
    return Machine("edge", "made up", g=g, l=nbytes * g * max(1, nprocs - 2))


STRUCT = np.dtype([("key", np.int32), ("weight", np.float64)])

VALUES = [
    None,
    7,
    2**70,
    1.5,
    "text",
    b"",
    b"some bytes",
    np.float32(2.5),
    np.bool_(True),
    np.array(3.5),
    np.arange(12.0).reshape(3, 4),
    np.arange(12).reshape(3, 4).T,
    np.empty(0),
    np.empty((3, 0, 2), np.int8),
    np.arange(2000),
    np.array([(1, 2.5), (3, 4.5)], STRUCT),
    np.array(["2001-01-01", "2002-02-02"], "M8[D]"),
    np.array([{"a": 1}, None], object),
    {"list": [1, 2], "array": np.arange(300.0)},
]


def described(value):
    """What must be the same of two values, as something that can be compared."""
    if isinstance(value, np.ndarray):
        return "array", value.shape, value.dtype, value.tolist()
    if isinstance(value, list | tuple):
        return [described(inner) for inner in value]
    if isinstance(value, dict):
        return {key: described(inner) for key, inner in value.items()}
    return type(value), value


def last(bsp):
    return bsp.nprocs - 1


def assert_raises(kind, words, run, main, *args, **more):
    with pytest.raises(kind) as caught:
        run(main, *args, **more)
    assert words in str(caught.value)
    assert f"{os.path.basename(__file__)}:" in str(caught.value)


# -- broadcast ----------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [None, 1, 2])
def test_broadcast_gives_every_process_the_value_of_the_root(bsp, stages):
    assert [
        described(bsp.broadcast("ignored" if bsp.pid else value, stages=stages)) for value in VALUES
    ] == [*map(described, VALUES)]


@pytest.mark.parametrize("stages", [1, 2])
def test_the_root_of_a_broadcast_may_be_any_process(bsp, stages):
    x = np.arange(100) + bsp.pid
    assert [int(bsp.broadcast(x, root, stages)[99]) for root in range(bsp.nprocs)] == [
        99 + root for root in range(bsp.nprocs)
    ]


@pytest.mark.parametrize("stages", [1, 2])
def test_what_broadcast_returns_is_the_callers_own_on_the_root_too(bsp, stages):
    x = np.ones(100)
    got = bsp.broadcast(x, stages=stages)
    got += bsp.pid
    bsp.sync()
    assert (x.sum(), got.sum()) == (100, 100 * (bsp.pid + 1))


@pytest.mark.parametrize("stages", [0, 3, -1, "two"])
def test_a_broadcast_has_one_stage_or_two(run, stages):
    def main(bsp):
        bsp.broadcast(1, stages=stages)

    words = f"broadcast: stages is {stages!r}; it is 1, 2, or None to leave it to the Machine"
    assert_raises(bsplib.UsageError, words, run, main)


def supersteps(run, tmp_path, main, *args, **more):
    """Run with records; return h of each superstep before the last, greatest over processes."""
    path = tmp_path / "recorded.bsp"
    run(main, *args, profile=path, **more)
    (recorded,) = read_trace(path).runs
    h = np.maximum(*h_relation(recorded))
    numbers = recorded.records["superstep"]
    return [int(h[numbers == number].max()) for number in range(numbers.max())]


@pytest.mark.parametrize("stages", [1, 2])
def test_a_broadcast_takes_as_many_supersteps_as_the_program_wants_stages(
    run, nprocs, tmp_path, stages
):
    def main(bsp):
        bsp.broadcast(np.zeros(9), stages=stages)

    assert len(supersteps(run, tmp_path, main)) == stages


@pytest.mark.parametrize("nbytes", [800, 808])
def test_broadcast_takes_two_stages_where_equation_8_says_so(run, nprocs, tmp_path, nbytes):
    def main(bsp):
        bsp.broadcast(np.zeros(nbytes // 8))

    expected = 2 if nprocs > 2 and nbytes > 800 else 1
    assert len(supersteps(run, tmp_path, main, machine=edge_at(800, nprocs))) == expected


def test_only_the_root_has_to_know_the_size_for_the_choice(run, nprocs, tmp_path):
    def main(bsp):
        bsp.broadcast(np.zeros(1 if bsp.pid else 500))
        bsp.broadcast(np.zeros(500 if bsp.pid else 1))

    counted = supersteps(run, tmp_path, main, machine=edge_at(100, nprocs))
    assert len(counted) == (3 if nprocs > 2 else 2)


# -- gather and allgather -----------------------------------------------------------------


def test_gather_gives_the_root_all_values_and_the_others_none(run, nprocs):
    def main(bsp):
        return [bsp.gather(value, root=last(bsp)) for value in VALUES]

    *others, gathered = run(main)
    assert others == [[None] * len(VALUES)] * (nprocs - 1)
    assert described(gathered) == [[described(value)] * nprocs for value in VALUES]


def test_allgather_gives_everybody_all_values(bsp):
    assert described([bsp.allgather(value) for value in VALUES]) == [
        [described(value)] * bsp.nprocs for value in VALUES
    ]


def test_what_is_gathered_is_the_callers_own(bsp):
    mine, listed = np.zeros(200), [0]
    for one in bsp.allgather(mine) + (bsp.gather(mine) or []):
        one[:] = 1
    for one in bsp.allgather(listed) + (bsp.gather(listed) or []):
        one[0] += 1
    assert (mine.sum(), listed) == (0, [0])


# -- scatter and alltoall -----------------------------------------------------------------


def test_scatter_gives_each_process_its_part(bsp):
    got = []
    for value in VALUES:
        parts = [(pid, value) for pid in range(bsp.nprocs)]
        got += [bsp.scatter(parts if bsp.pid == last(bsp) else None, root=last(bsp))]
        got += [bsp.scatter([value] * bsp.nprocs)]
    assert described(got) == described(
        [part for value in VALUES for part in ((bsp.pid, value), value)]
    )


def test_an_array_is_scattered_along_its_first_axis(bsp):
    rows = np.arange(bsp.nprocs * 3).reshape(bsp.nprocs, 3)
    number = bsp.scatter(np.arange(bsp.nprocs) * 0.5)
    assert bsp.scatter(rows).tolist() == [3 * bsp.pid, 3 * bsp.pid + 1, 3 * bsp.pid + 2]
    assert described(number) == described(np.float64(bsp.pid / 2))


def test_alltoall_brings_each_process_the_parts_for_it(run, nprocs):
    def main(bsp):
        got = []
        for value in VALUES:
            got += [bsp.alltoall([(bsp.pid, pid, value) for pid in range(bsp.nprocs)])]
            got += [bsp.alltoall([value] * bsp.nprocs)]
        return described(got)

    everyone = range(nprocs)
    assert run(main) == [
        described(
            [
                parts
                for value in VALUES
                for parts in ([(source, pid, value) for source in everyone], [value] * nprocs)
            ]
        )
        for pid in everyone
    ]


def test_the_parts_of_alltoall_may_be_unequal_and_missing(bsp):
    parts = [np.full(10 * pid, bsp.pid) if pid != bsp.pid else None for pid in range(bsp.nprocs)]
    got = bsp.alltoall(parts)
    assert [None if part is None else part.tolist() for part in got] == [
        None if source == bsp.pid else [source] * (10 * bsp.pid) for source in range(bsp.nprocs)
    ]


@pytest.mark.parametrize("operation", ["scatter", "alltoall"])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_number_of_parts_is_named_with_the_number_of_processes(
    run, nprocs, operation, change
):
    def main(bsp):
        getattr(bsp, operation)([0] * (bsp.nprocs + change))

    words = f"{operation}: there are {nprocs + change} parts for {nprocs} processes"
    assert_raises(bsplib.UsageError, words, run, main)


@pytest.mark.procs(2)
@pytest.mark.parametrize("operation", ["scatter", "alltoall"])
def test_an_array_of_a_wrong_number_of_parts_can_be_cut(run, operation):
    def main(bsp):
        getattr(bsp, operation)(np.arange(7))

    words = f"{operation}: there are 7 parts for 2 processes; each process has one; axis=0 cuts"
    assert_raises(bsplib.UsageError, words, run, main)


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("scatter", "needed; the root gives it, which is process 0 unless root= names one"),
        ("alltoall", "needed"),
        ("gather", "needed"),
        ("allgather", "needed"),
    ],
)
def test_none_is_no_array_to_cut_or_join(run, operation, words):
    def main(bsp):
        getattr(bsp, operation)(None, axis=0)

    words = f"{operation}: there is None where an array is {words}"
    assert_raises(bsplib.UsageError, words, run, main)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("operation", ["scatter", "alltoall"])
@pytest.mark.parametrize(("parts", "kind"), [(None, "NoneType"), (5, "int")])
def test_parts_that_are_no_list_are_an_error(run, nprocs, operation, parts, kind):
    def main(bsp):
        getattr(bsp, operation)(parts)

    words = f"{operation}: parts is a {kind}; it is a list with one part for each of the {nprocs}"
    assert_raises(bsplib.UsageError, words, run, main)


# -- reduce, allreduce, scan --------------------------------------------------------------


SHAPES = [(), (1,), (3,), (0,), (5, 7), (2, 0), (40, 50)]
FORMS = [(shape, "C") for shape in SHAPES] + [((5, 7), "F"), ((40, 50), "F")]


def combined(bsp, x, op=np.add):
    """The results of the three, as (reduce, allreduce, scan)."""
    return bsp.reduce(x, op, root=last(bsp)), bsp.allreduce(x, op), bsp.scan(x, op)


def prefixes_of(values, op, associative):
    """All combinations of the first values, in pid order, by hand.

    Associative operations combine in a tree: the first m of n values with the rest, where m is
    the largest power of two below n. All others combine from the left.
    """
    if len(values) == 1:
        return [values[0][()] if isinstance(values[0], np.ndarray) else values[0]]
    half = 1 << (len(values) - 1).bit_length() - 1 if associative else len(values) - 1
    before = prefixes_of(values[:half], op, associative)
    after = prefixes_of(values[half:], op, associative)
    return [*before, *(op(before[-1], each) for each in after)]


def expected_of(values, op):
    """The results of the three by hand."""
    prefixes = prefixes_of(values, op, op is not np.subtract)
    none = [None] * (len(values) - 1)
    return [*zip([*none, prefixes[-1]], [prefixes[-1]] * len(values), prefixes, strict=True)]


@BOTH
@pytest.mark.parametrize("op", [np.add, np.subtract, np.maximum, np.multiply], ids=str)
def test_arrays_are_combined_element_by_element(run, nprocs, machine, op):
    def values(pid, shape, order):
        return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 + pid).copy(order)

    def main(bsp):
        return [described([*combined(bsp, values(bsp.pid, *form), op)]) for form in FORMS]

    by_hand = [expected_of([values(pid, *form) for pid in range(nprocs)], op) for form in FORMS]
    assert run(main, machine=machine) == [described([*rows]) for rows in zip(*by_hand, strict=True)]


SHORT_LATENCY = Machine("short latency", "made up", g=1e-9, l=1e-10)
EDGES = [9, 17, 64]


@pytest.mark.parametrize("p", EDGES)
@pytest.mark.parametrize(
    "machine", [ONE_STAGE, TWO_STAGES, SHORT_LATENCY], ids=lambda one: one.name
)
def test_many_processes_combine_in_the_same_tree_in_whatever_stages(p, machine):
    values = [0.1 * (pid + 1) ** 3 for pid in range(p)]

    def main(bsp):
        x = values[bsp.pid]
        arrays = np.array([x, 1e17 * (-1) ** bsp.pid]), np.full(3, x, np.float32)
        bsp.send(bsp.pid, "not read yet")
        bsp.allreduce(x)
        left = [*bsp.messages()]
        found = [
            call(each)
            for each in (x, np.float64(x), *arrays)
            for call in (bsp.allreduce, bsp.scan, bsp.exscan)
        ]
        return found, bsp.allreduce(x, np.subtract), left

    for pid, (found, difference, left) in enumerate(
        bsplib.run(main, nprocs=p, backend="sim", machine=machine)
    ):
        assert left == [(pid, None, "not read yet")]
        assert difference == functools.reduce(operator.sub, values)
        for number, form in enumerate(
            (float, np.float64, lambda x: x, lambda x: np.full(3, x, np.float32))
        ):
            every = [form(x) for x in values]
            if number == 2:
                every = [np.array([x, 1e17 * (-1) ** who]) for who, x in enumerate(values)]
            prefixes = prefixes_of(every, np.add, True)
            zero = np.zeros_like(every[0])[()]
            by_hand = prefixes[-1], prefixes[pid], prefixes[pid - 1] if pid else zero
            results = found[3 * number : 3 * number + 3]
            assert [described_bits(each) for each in results] == [
                described_bits(each) for each in by_hand
            ]


def described_bits(value):
    """Dtype, shape and every bit of numbers."""
    values = np.asarray(value)
    return values.dtype, values.shape, values.tobytes()


@pytest.mark.parametrize(
    ("p", "g", "latency", "expected"),
    [
        (8, 1e-9, 0.0, [7]),
        (9, 0.0, 1e-6, [7, 8]),
        (64, 0.0, 1e-6, [7, 7]),
        (64, 1e-9, 1e-12, [1] * 6),
        (64, 1e-9, 5e-7, [3, 3, 3]),
    ],
)
def test_the_machine_chooses_the_stages_of_more_than_eight_processes(
    p, g, latency, expected, tmp_path
):
    def main(bsp):
        bsp.allreduce(1.0)
        bsp.scan(1.0)

    machine = Machine("made up", "made up", g=g, l=latency)
    h = [8 * each for each in expected]
    found = supersteps(bsplib.run, tmp_path, main, nprocs=p, backend="sim", machine=machine)
    assert found == h + h


@BOTH
def test_dtypes_may_differ_between_processes(run, nprocs, machine):
    def main(bsp):
        x = np.full(9, bsp.pid, [np.int32, np.float64, np.int8][bsp.pid % 3])
        return described(bsp.allreduce(x))

    dtype = np.int32 if nprocs == 1 else np.float64
    total = described(np.full(9, sum(range(nprocs)), dtype))
    assert run(main, machine=machine) == [total] * nprocs


@BOTH
def test_a_ufunc_may_give_another_dtype(run, nprocs, machine):
    def main(bsp):
        return described(bsp.allreduce(np.full(10, 2), np.true_divide))

    quotient = np.full(10, 2.0 ** (2 - nprocs)) if nprocs > 1 else np.full(10, 2)
    assert run(main, machine=machine) == [described(quotient)] * nprocs


@BOTH
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (sum, "sum"),
        (np.sum, "sum"),
        (np.prod, "prod"),
        (np.min, "min"),
        (np.max, "max"),
        (any, "any"),
        (np.any, "any"),
        (all, "all"),
        (np.all, "all"),
    ],
)
def test_a_function_that_combines_elements_means_the_operation_of_its_name(
    run, nprocs, machine, function, name
):
    def main(bsp):
        x = np.array([bsp.pid, 1, 2])
        by_function = bsp.allreduce(x, function), bsp.allreduce(bsp.pid, function)
        by_name = bsp.allreduce(x, name), bsp.allreduce(bsp.pid, name)
        return described(by_function[0]) == described(by_name[0]), by_function[1] == by_name[1]

    assert run(main, machine=machine) == [(True, True)] * nprocs


@BOTH
def test_a_function_is_given_arrays_whole_and_of_any_shape(run, nprocs, machine):
    def main(bsp):
        x = np.full(bsp.pid * 100, bsp.pid)
        return bsp.allreduce(x, lambda a, b: np.concatenate([a, b])).tolist()

    joined = [pid for pid in range(nprocs) for _ in range(pid * 100)]
    assert run(main, machine=machine) == [joined] * nprocs


def test_a_function_may_change_what_it_is_given(run, nprocs):
    def extend(a, b):
        a += b
        return a

    def main(bsp):
        mine, listed = np.ones(300), [bsp.pid]
        results = combined(bsp, mine, extend)[1:] + combined(bsp, listed, extend)[1:]
        return mine.sum(), listed, results[0].sum(), results[1].sum(), results[2], results[3]

    everyone = [*range(nprocs)]
    assert run(main) == [
        (300, [pid], 300 * nprocs, 300 * (pid + 1), everyone, everyone[: pid + 1])
        for pid in everyone
    ]


@pytest.mark.procs(least=2)
@BOTH
@pytest.mark.parametrize("operation", ["reduce", "allreduce", "scan", "exscan"])
def test_shapes_that_differ_are_named_with_their_processes(run, nprocs, machine, operation):
    def main(bsp):
        getattr(bsp, operation)(np.ones(4 if bsp.pid == 1 else 3))

    others = (
        "process 0" if nprocs == 2 else f"processes {', '.join(map(str, [0, *range(2, nprocs)]))}"
    )
    words = f"{operation}: the shapes of x differ: (3,) on {others}; (4,) on process 1"
    assert_raises(bsplib.ShapeError, words, run, main, machine=machine)


@pytest.mark.procs(least=3)
@pytest.mark.parametrize("operation", ["reduce", "allreduce", "scan", "exscan"])
@pytest.mark.parametrize("odd", ["first", "last"])
def test_shapes_are_named_where_they_lead_to_different_ways(run, nprocs, operation, odd):
    which = 0 if odd == "first" else nprocs - 1

    def main(bsp):
        x = np.ones(3 if bsp.pid == which else 1000)
        more = {"root": 1} if operation == "reduce" else {}
        getattr(bsp, operation)(x, **more)

    others = (1, nprocs - 1) if which == 0 else (0, nprocs - 2)
    words = [f"(1000,) on processes {others[0]} to {others[1]}"]
    words.insert(0 if which == 0 else 1, f"(3,) on process {which}")
    assert_raises(
        bsplib.ShapeError, f"differ: {'; '.join(words)}", run, main, machine=edge_at(100, nprocs)
    )


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("operation", ["reduce", "allreduce", "scan", "exscan"])
@pytest.mark.parametrize(
    ("op", "words"),
    [
        (np.sin, "numpy's sin takes 1 values and returns 1; an op takes two and returns one"),
        (np.divmod, "numpy's divmod takes 2 values and returns 2; an op takes two and returns one"),
        ("plus", "op is 'plus'; names are sum, prod"),
        ("array", "op is 'array'; names are sum, prod"),  # of numpy, and no operation
        (5, "op is 5; it is a binary ufunc or a function of two values"),
    ],
)
def test_what_cannot_combine_two_values_is_refused(run, operation, op, words):
    def main(bsp):
        getattr(bsp, operation)(1, op)

    assert_raises(bsplib.UsageError, f"{operation}: {words}", run, main)


# -- errors of all ------------------------------------------------------------------------

ROOTED = {
    "broadcast": lambda bsp, root: bsp.broadcast(1, root),
    "gather": lambda bsp, root: bsp.gather(1, root),
    "scatter": lambda bsp, root: bsp.scatter([1] * bsp.nprocs, root),
    "reduce": lambda bsp, root: bsp.reduce(1, root=root),
}

UNROOTED = {
    "allgather": lambda bsp: bsp.allgather(1),
    "alltoall": lambda bsp: bsp.alltoall([1] * bsp.nprocs),
    "allreduce": lambda bsp: bsp.allreduce(1),
    "scan": lambda bsp: bsp.scan(1),
    "exscan": lambda bsp: bsp.exscan(1),
}


@pytest.mark.parametrize("operation", ROOTED)
@pytest.mark.parametrize("past", [False, True], ids=["-1", "nprocs"])
def test_a_root_outside_the_group_is_an_error(run, nprocs, operation, past):
    def main(bsp):
        ROOTED[operation](bsp, bsp.nprocs if past else -1)

    root = nprocs if past else -1
    words = f"{operation}: there is no process {root} among {nprocs} (0 to {nprocs - 1})"
    assert_raises(bsplib.ProcessRangeError, words, run, main)


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("operation", ROOTED)
def test_roots_that_differ_are_a_mismatch(run, operation):
    def main(bsp):
        ROOTED[operation](bsp, min(bsp.pid, 1))

    assert_raises(bsplib.SyncMismatchError, "thing came from process ", run, main)


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("operation", [*ROOTED, *UNROOTED])
def test_a_process_in_another_collective_is_a_mismatch(run, operation):
    every = ROOTED | UNROOTED
    other = "gather" if operation == "allgather" else "allgather"

    def main(bsp):
        call = every[operation if bsp.pid else other]
        call(bsp, bsp.nprocs - 1) if call in ROOTED.values() else call(bsp)

    words = r"is in \w+ in the same superstep|thing came from process \d+; all processes call"
    with pytest.raises(bsplib.SyncMismatchError, match=words):
        run(main)


@pytest.mark.parametrize(
    "call",
    [
        lambda bsp, x: bsp.broadcast(x),
        lambda bsp, x: bsp.gather(x),
        lambda bsp, x: bsp.allgather(x),
        lambda bsp, x: bsp.scatter([x] * bsp.nprocs),
        lambda bsp, x: bsp.alltoall([x] * bsp.nprocs),
        lambda bsp, x: bsp.reduce(x, max),
        lambda bsp, x: bsp.allreduce(x, max),
        lambda bsp, x: bsp.scan(x, max),
        lambda bsp, x: bsp.exscan(x, max),
    ],
)
def test_a_value_that_cannot_be_pickled_is_an_error_at_any_number_of_processes(run, call):
    def main(bsp):
        call(bsp, lambda: None)

    assert_raises(bsplib.MessageError, "of type function cannot be pickled", run, main)


# -- with the rest of a program -----------------------------------------------------------


EVERY = {
    "broadcast in one stage": lambda bsp: bsp.broadcast(np.arange(9), stages=1),
    "broadcast in two stages": lambda bsp: bsp.broadcast(np.arange(9), stages=2),
    "gather": lambda bsp: bsp.gather(np.arange(9)),
    "allgather": lambda bsp: bsp.allgather(np.arange(9)),
    "scatter": lambda bsp: bsp.scatter([np.arange(9)] * bsp.nprocs),
    "alltoall": lambda bsp: bsp.alltoall([np.arange(9)] * bsp.nprocs),
    "reduce": lambda bsp: bsp.reduce(np.arange(9)),
    "allreduce": lambda bsp: bsp.allreduce(np.arange(9)),
    "scan": lambda bsp: bsp.scan(np.arange(9)),
    "exscan": lambda bsp: bsp.exscan(np.arange(9)),
}


@BOTH
@pytest.mark.parametrize("collective", EVERY)
@pytest.mark.parametrize("size", [3, 3000])
def test_messages_sent_before_a_collective_can_be_read_after_it(
    run, nprocs, machine, collective, size
):
    def main(bsp):
        bsp.send(right(bsp), np.full(size, bsp.pid), ("gather", None))
        bsp.send(right(bsp), {"from": bsp.pid})
        alone = EVERY[collective](bsp)
        read = [(source, tag, payload) for source, tag, payload in bsp.messages()]
        again = EVERY[collective](bsp)
        (source, tag, payload), second = read
        return (
            (source, tag, set(payload.tolist()), second),
            repr(alone) == repr(again),
            bsp.qsize(),
        )

    assert run(main, machine=machine) == [
        ((pid, ("gather", None), {pid}, (pid, None, {"from": pid})), True, (0, 0))
        for pid in [(pid - 1) % nprocs for pid in range(nprocs)]
    ]


@BOTH
@pytest.mark.parametrize("collective", EVERY)
def test_messages_left_unread_are_gone_after_a_collective(run, nprocs, machine, collective):
    def main(bsp):
        bsp.send(right(bsp), b"read")
        bsp.send(right(bsp), b"left")
        bsp.sync()
        first = bsp.move()
        EVERY[collective](bsp)
        return first, bsp.qsize()

    assert run(main, machine=machine) == [(b"read", (0, 0))] * nprocs


def test_messages_of_a_collective_need_no_tag_of_the_set_size(bsp):
    bsp.set_tagsize(4)
    bsp.sync()
    bsp.send(right(bsp), b"mine", b"four")
    total = bsp.allreduce(1)
    assert total == bsp.nprocs
    assert [(tag, payload) for _, tag, payload in bsp.messages()] == [(b"four", b"mine")]


@BOTH
@pytest.mark.parametrize("collective", EVERY)
def test_pending_puts_and_gets_take_effect_at_a_collective(run, nprocs, machine, collective):
    def main(bsp):
        x = bsp.array([bsp.pid])
        bsp.sync()
        got = bsp.get(right(bsp), x)
        bsp.put(right(bsp), [bsp.pid + 100], x)
        EVERY[collective](bsp)
        return int(got[0]), int(x[0])

    assert run(main, machine=machine) == [
        ((pid + 1) % nprocs, (pid - 1) % nprocs + 100) for pid in range(nprocs)
    ]


@BOTH
@pytest.mark.parametrize("size", [50, LARGE // 8])
def test_a_value_is_taken_at_the_call_though_a_put_changes_it_at_the_sync(
    run, nprocs, machine, size
):
    def main(bsp):
        x = bsp.zeros(size)
        seen = []
        for collective in (
            lambda: bsp.broadcast(x),
            lambda: bsp.allgather(x)[bsp.pid],
            lambda: bsp.alltoall([x] * bsp.nprocs)[bsp.pid],
            lambda: bsp.scatter([x] * bsp.nprocs),
            lambda: bsp.allreduce(x),
            lambda: bsp.scan(x),
        ):
            x[:] = 0
            bsp.sync()
            bsp.put(bsp.pid, np.ones(size), x)
            seen.append((collective().sum(), x.sum()))
        return seen

    assert run(main, machine=machine) == [[(0, size)] * 6] * nprocs


@BOTH
def test_collectives_work_in_each_sub_group(run, nprocs, machine):
    def main(bsp):
        half = bsp.nprocs // 2
        with bsp.partition([half, bsp.nprocs]) as sub:
            root = sub.nprocs - 1
            x = np.full(20, bsp.pid)
            inside = (
                int(sub.broadcast(x, root)[0]),
                sub.allgather(bsp.pid),
                int(sub.allreduce(x)[19]),
                int(sub.scan(x)[19]),
                sub.alltoall([bsp.pid] * sub.nprocs),
            )
        return inside, int(bsp.allreduce(1))

    def expected(pid):
        half = nprocs // 2
        mine = [*range(half)] if pid < half else [*range(half, nprocs)]
        before = [other for other in mine if other <= pid]
        return (mine[-1], mine, sum(mine), sum(before), mine), nprocs

    assert run(main, machine=machine) == [expected(pid) for pid in range(nprocs)]


# -- costs --------------------------------------------------------------------------------

WORDS = 840  # elements that every number of processes here divides
N = 8 * WORDS


@pytest.mark.parametrize("root", ["first", "last"])
@pytest.mark.parametrize(
    ("call", "stages"),
    [
        (lambda bsp, x, root: bsp.broadcast(x, root, stages=1), 1),
        (lambda bsp, x, root: bsp.broadcast(x, root, stages=2), 2),
        (lambda bsp, x, root: bsp.broadcast(x.tobytes(), root, stages=1), 1),
        (lambda bsp, x, root: bsp.broadcast(x.tobytes(), root, stages=2), 2),
        (lambda bsp, x, root: bsp.gather(x, root), 1),
        (lambda bsp, x, root: bsp.allgather(x), 1),
        (lambda bsp, x, root: bsp.scatter([x] * bsp.nprocs, root), 1),
        (lambda bsp, x, root: bsp.alltoall([x] * bsp.nprocs), 1),
    ],
)
def test_moving_values_costs_what_is_promised(run, nprocs, tmp_path, call, stages, root):
    def main(bsp):
        call(bsp, np.arange(float(WORDS)), 0 if root == "first" else bsp.nprocs - 1)

    h = (nprocs - 1) * N if stages == 1 else (nprocs - 1) * N // nprocs
    assert supersteps(run, tmp_path, main) == [h] * stages


@BOTH
@pytest.mark.parametrize(
    "call",
    [
        lambda bsp, x: bsp.reduce(x),
        lambda bsp, x: bsp.reduce(x, root=bsp.nprocs - 1),
        lambda bsp, x: bsp.allreduce(x),
        lambda bsp, x: bsp.scan(x),
        lambda bsp, x: bsp.exscan(x),
    ],
)
def test_combining_costs_what_is_promised(run, nprocs, tmp_path, machine, call):
    def main(bsp):
        call(bsp, np.arange(float(WORDS)))

    h = [(nprocs - 1) * N]
    if machine is TWO_STAGES and nprocs > 2:
        h = [(nprocs - 1) * N // nprocs] * 2
    assert supersteps(run, tmp_path, main, machine=machine) == h


def test_unequal_values_cost_what_is_promised(run, nprocs, tmp_path):
    def main(bsp):
        x = np.zeros(100 * (bsp.pid + 1), np.int8)
        bsp.gather(x)
        bsp.allgather(x)
        bsp.scatter([np.zeros(100 * (pid + 1), np.int8) for pid in range(bsp.nprocs)])

    but_the_first = sum(100 * (pid + 1) for pid in range(1, nprocs))
    most = max(but_the_first, (nprocs - 1) * 100 * nprocs)
    assert supersteps(run, tmp_path, main) == [but_the_first, most, but_the_first]


def test_every_process_syncs_at_the_same_line_of_a_collective(run, tmp_path):
    def main(bsp):
        for collective in EVERY.values():
            collective(bsp)

    path = tmp_path / "recorded.bsp"
    run(main, profile=path)
    (recorded,) = read_trace(path).runs
    stacks = {}
    for record in recorded.records:
        stacks.setdefault(int(record["superstep"]), set()).add(int(record["stack"]))
    assert all(len(same) == 1 for same in stacks.values())
