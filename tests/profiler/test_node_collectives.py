"""Collectives in node models: their formulas, and laws that hold far beyond the runs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import bsplib
from bsplib.experiments.collective_costs import COSTS, most_received, rows
from bsplib.experiments.formula import read_formula
from bsplib.machine import Machine
from bsplib.primitives.stages import stages_of
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes
from bsplib.profiler.models.nodes.collectives import kinds_of
from bsplib.recording.trace import read_trace

MACHINE = Machine("made up", "by hand", g=1e-9, l=4e-6)
SLOW = Machine("slow to sync", "by hand", g=1e-9, l=4e-2)
RATIO = 4000.0


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Run on virtual processors, once at each size; return the run with its variable."""
    path = tmp_path_factory.mktemp("collectives") / "run.bsp"

    machines = {"made up": MACHINE, "slow to sync": SLOW}

    @cache
    def record_it(main, n, nprocs, machine="made up"):
        path.unlink(missing_ok=True)
        bsplib.run(main, n, nprocs=nprocs, backend="sim", profile=path, machine=machines[machine])
        return read_trace(path).runs[0], {"n": float(n)}, ()

    return record_it


@pytest.fixture(scope="module")
def small_model(record):
    """Fit a model to the small runs of a program, once."""
    return cache(lambda main: fit_nodes([record(main, n, p) for n, p in SMALL]))


def seen(run, quantity):
    """The value of a quantity of the only collective of a run."""
    model = fit_nodes([run])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    point = {"n": run[1]["n"], "p": float(run[0].nprocs)}
    return model.values([each], quantity, point).value


def combine(bsp, n):
    bsp.allreduce(np.zeros(n))


def prefix(bsp, n):
    bsp.scan(np.zeros(n))


def collect(bsp, n):
    bsp.reduce(np.zeros(n))


def tell(bsp, n):
    bsp.broadcast(np.zeros(n))


def test_the_stages_of_a_combination_are_those_that_processes_take():
    for p in (1, 2, 7, 8, 9, 12, 33, 64, 65, 100):
        for radix in (8, 4, 2):
            by_process = [stages_of(pid, p, radix) for pid in range(p)]
            taken = tuple(
                max(max(len(each.receivers), len(each.sources)) for each in stage)
                for stage in zip(*by_process, strict=True)
            )
            assert most_received(p, radix) == taken


@pytest.mark.parametrize("main", [combine, prefix, collect, tell])
@pytest.mark.parametrize(("n", "p"), [(3, 2), (3, 9), (301, 3), (301, 12), (5000, 8), (5000, 17)])
def test_the_formula_of_a_collective_gives_what_its_calls_cost(record, main, n, p):
    run = record(main, n, p)
    name = {combine: "allreduce", prefix: "scan", collect: "reduce", tell: "broadcast"}[main]
    expected = COSTS[kinds_of(f"a.py line 1 · {name}")[0]](8.0 * n, 8, p, RATIO)
    assert (seen(run, "h"), seen(run, "supersteps")) == expected


@pytest.mark.lengthy
@pytest.mark.parametrize("main", [combine, prefix, collect, tell])
def test_the_law_of_a_collective_holds_where_its_stages_are_others(record, main):
    """Learnt where few processes take one stage; n is no multiple of p anywhere."""
    model = fit_nodes([record(main, n, p) for n in (30, 100, 300) for p in (1, 2, 4)])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    for n, p in ((30, 16), (1000, 7), (3000, 33)):
        run = record(main, n, p)
        for quantity in ("h", "supersteps"):
            value = model.values([each], quantity, {"n": float(n), "p": float(p)})
            assert value.value == value.low == value.high == seen(run, quantity)


def test_on_another_machine_a_collective_has_the_stages_that_it_takes_there(record):
    model = fit_nodes([record(combine, n, p) for n in (30, 100, 300) for p in (1, 2, 4)])
    there = predict_nodes(model, 33, {"n": 3000}, SLOW, speed="1x")
    assert there.total.sync_s == pytest.approx(
        4e-2 * seen(record(combine, 3000, 33, SLOW.name), "supersteps")
    )


@pytest.mark.lengthy
def test_unequal_blocks_are_priced_by_whole_elements(record):
    def main(bsp, n):
        blocks = bsp.scatter(np.zeros(n) if bsp.pid == 0 else None, axis=0)
        bsp.gather(blocks, axis=0)
        bsp.allgather(blocks, axis=0)

    model = fit_nodes([record(main, n, p) for n in (100, 200, 400) for p in (2, 3, 4, 8)])
    point = {"n": 1600.0, "p": 64.0}
    there = fit_nodes([record(main, 1600, 64)])
    for leaf, chains in model.leaves().items():
        expected = there.values(there.leaves()[leaf], "h", point).value
        value = model.values(chains, "h", point)
        assert value.value == value.low == value.high == expected


@pytest.mark.lengthy
def test_a_halo_on_a_grid_is_learnt_from_its_neighbours(record):
    def main(bsp, n):
        high = rows(bsp.nprocs)
        wide = bsp.nprocs // high
        row, column = divmod(bsp.pid, wide)
        for there, length in ((-wide, n / wide), (wide, n / wide), (-1, n / high), (1, n / high)):
            goal = row + there // wide if abs(there) == wide and wide > 1 else row
            if there in (-1, 1) and length == n / high:
                if 0 <= column + there < wide:
                    bsp.send(bsp.pid + there, np.zeros(int(length)))
            elif 0 <= goal < high and goal != row:
                bsp.send(bsp.pid + there, np.zeros(int(length)))
        bsp.sync()

    model = fit_nodes([record(main, n, p) for n in (64, 128, 256) for p in (1, 2, 4, 8)])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    value = model.values([each], "h", {"n": 4096.0, "p": 64.0})
    assert value.value == value.low == value.high == 8 * 4 * 4096 / 8


def test_functions_of_laws_are_no_functions_of_formulas_with_fewer_values():
    assert read_formula("f[0]*grid_rows(P)").columns({"P": [12.0, 16.0]})[0][:, 0].tolist() == [
        3,
        4,
    ]
    with pytest.raises(ValueError, match="h_spread takes 4 arguments, not 1"):
        read_formula("f[0]*h_spread(P)")


# -- parts of all processes, learnt at n up to 400 and p up to 8 ----------------------------------

SMALL = [(n, p) for n in (100, 230, 400) for p in (1, 2, 4, 8)]
FAR = [(1600, 16), (1003, 13)]
FARTHEST = (1600, 64)


def block(bsp, n):
    """How many of n elements a process has, where the first ones have one more."""
    return n // bsp.nprocs + (bsp.pid < n % bsp.nprocs)


def gather_equal(bsp, n):
    bsp.gather(np.zeros(n // bsp.nprocs))


def gather_rows(bsp, n):
    bsp.gather(np.zeros((block(bsp, n), n)))


def gather_rows_to_last(bsp, n):
    bsp.gather(np.zeros((block(bsp, n), n)), root=bsp.nprocs - 1)


def gather_longer_by_pid(bsp, n):
    bsp.gather(np.zeros((bsp.pid + 1) * (n // bsp.nprocs)))


def gather_longer_to_last(bsp, n):
    bsp.gather(np.zeros((bsp.pid + 1) * (n // bsp.nprocs)), root=bsp.nprocs - 1)


def gather_twice(bsp, n):
    for _ in range(2):
        bsp.gather(np.zeros(n))


def scatter_rows(bsp, n):
    bsp.scatter(np.zeros((n, n // 4)) if bsp.pid == 0 else None, axis=0)


def scatter_parts(bsp, n):
    bsp.scatter([np.zeros(n)] * bsp.nprocs if bsp.pid == 0 else None)


def allgather_rows(bsp, n):
    bsp.allgather(np.zeros((block(bsp, n), n)))


def allgather_with_rest(bsp, n):
    own = n // bsp.nprocs
    last = bsp.pid == bsp.nprocs - 1
    bsp.allgather(np.zeros(n - (bsp.nprocs - 1) * own if last else own))


def allgather_longer_by_pid(bsp, n):
    bsp.allgather(np.zeros(n * (bsp.pid + 1)))


def allgather_shorter_by_pid(bsp, n):
    bsp.allgather(np.zeros(n * (bsp.nprocs - bsp.pid)))


def alltoall_parts_of_blocks(bsp, n):
    bsp.alltoall([np.zeros(n // bsp.nprocs // bsp.nprocs)] * bsp.nprocs)


def alltoall_rows_to_columns(bsp, n):
    bsp.alltoall(np.zeros((block(bsp, n), n)), axis=(1, 0))


def alltoall_to_next(bsp, n):
    parts = [None] * bsp.nprocs
    parts[(bsp.pid + 1) % bsp.nprocs] = np.zeros(n)
    bsp.alltoall(parts)


def split_in_two(bsp, n):
    with bsp.split(bsp.pid % 2):
        pass


def exscan_in_pieces(bsp, n):
    bsp.exscan(np.zeros(n))


def broadcast_from_last(bsp, n):
    bsp.broadcast(np.zeros(n), root=bsp.nprocs - 1)


def reduce_to_last(bsp, n):
    bsp.reduce(np.zeros(n), root=bsp.nprocs - 1)


OF_PARTS = (gather_equal, gather_rows, gather_rows_to_last, gather_longer_by_pid)
OF_PARTS += (gather_longer_to_last, gather_twice, scatter_rows, scatter_parts, allgather_rows)
OF_PARTS += (allgather_with_rest, allgather_longer_by_pid, allgather_shorter_by_pid)
OF_PARTS += (alltoall_parts_of_blocks, alltoall_rows_to_columns, alltoall_to_next, split_in_two)
OF_PIECES = (exscan_in_pieces, broadcast_from_last, reduce_to_last)


ALL_PARTS = (*OF_PARTS, *OF_PIECES)
RARE = [main for main in ALL_PARTS if main not in (gather_rows, exscan_in_pieces)]
PLACES = [
    *((main, FAR) for main in ALL_PARTS),
    *((main, [FARTHEST]) for main in (gather_rows, exscan_in_pieces)),
    *(pytest.param(main, [FARTHEST], marks=pytest.mark.slow) for main in RARE),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(("main", "far"), PLACES)
def test_h_of_unequal_parts_and_other_roots_is_exact_up_to_64_processes(
    record, small_model, main, far
):
    model = small_model(main)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    for n, p in far:
        run = record(main, n, p)
        for quantity in ("supersteps", "h"):
            value = model.values([each], quantity, {"n": float(n), "p": float(p)})
            assert value.value == value.low == value.high == seen(run, quantity)


@pytest.mark.parametrize("main", OF_PIECES)
@pytest.mark.parametrize(("n", "p"), [(3, 2), (301, 3), (302, 3), (5000, 7), (5005, 8), (9, 17)])
def test_the_formula_of_other_pieces_gives_what_its_calls_cost(record, main, n, p):
    run = record(main, n, p)
    name = main.__name__.partition("_")[0]
    expected = COSTS[kinds_of(f"a.py line 1 · {name}")[-1]](8.0 * n, 8, p, RATIO)
    assert (seen(run, "h"), seen(run, "supersteps")) == expected


@pytest.mark.lengthy
def test_parts_that_depend_on_data_are_learnt_as_a_fraction(tmp_path):
    def main(bsp, n, seed):
        of_this = np.random.default_rng((seed, bsp.pid)).binomial(n // bsp.nprocs, 0.3)
        bsp.gather(np.zeros(of_this))

    def run(n, p, seed):
        path = tmp_path / f"{n}-{p}-{seed}.bsp"
        bsplib.run(main, n, seed, nprocs=p, backend="sim", profile=path, machine=MACHINE)
        return read_trace(path).runs[0], {"n": float(n)}, (float(seed),)

    model = fit_nodes([run(n, p, seed) for n in (800, 1600) for p in (2, 4, 8) for seed in (1, 2)])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert each.laws["h"].kind == "fitted"
    value = model.values([each], "h", {"n": 12800.0, "p": 64.0})
    expected = 8 * 0.3 * 12800 * 63 / 64
    assert value.value == pytest.approx(expected, rel=0.05)
    assert value.low <= expected <= value.high


@pytest.mark.lengthy
def test_a_collective_of_few_samples_is_not_refused(record):
    """The samples are between 16 and 31, which no formula of n and p gives."""

    def main(bsp, n):
        keys = np.zeros(n // bsp.nprocs)
        bsp.allgather(keys[:: max(1, len(keys) // 16)])

    model = fit_nodes([record(main, n, p) for n, p in SMALL])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    value = model.values([each], "h", {"n": 1600.0, "p": 64.0})
    assert value.is_known
    assert value.low <= seen(record(main, 1600, 64), "h") <= value.high


@pytest.mark.lengthy
def test_a_reduction_of_pickles_may_have_one_stage_on_many_processes(record):
    def main(bsp, n):
        bsp.allreduce((1.0, bsp.pid), max)

    model = fit_nodes([record(main, n, p) for n, p in SMALL])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    value = model.values([each], "supersteps", {"n": 400.0, "p": 64.0})
    assert (value.value, value.high) == (1, 2)
    assert each.laws["supersteps"].settle[0]["p"] > 8
