"""Programs recorded small on virtual processors, and predicted large."""

import functools
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import bsplib
from bsplib.experiments.collective_costs import COSTS
from bsplib.machine import Machine
from bsplib.profiler.costs import h_relation, superstep_numbers
from bsplib.profiler.predict import ModelError, learn, predict_run, read_model, scaling, write_model
from bsplib.profiler.predict.document import document
from bsplib.profiler.predict.laws import Law
from bsplib.profiler.predict.observed import observe
from bsplib.profiler.predict.planning import run_to_make
from bsplib.profiler.predict.program import Learned, ProgramModel, learn_observed
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp
from tests.recordings import record_run

THERE = Machine("there", "made up", g=2e-9, l=2e-5, relative_speed=1.0)


def charge(bsp, seconds):
    bsp.charge(0.0)
    bsp.charge(seconds)


def wavefront(bsp, n):
    charge(bsp, 1e-6)
    edge = bsp.zeros(16)
    bsp.sync()
    blocks = n // 16
    for step in range(blocks + bsp.nprocs - 1):
        if 0 <= step - bsp.pid < blocks:
            charge(bsp, 1e-8 * n / bsp.nprocs)
            if bsp.pid + 1 < bsp.nprocs:
                bsp.put(bsp.pid + 1, np.ones(16), edge)
        bsp.sync()


def merge(bsp, n):
    charge(bsp, 1e-8 * n / bsp.nprocs)
    data, gap = np.zeros(n // bsp.nprocs), 1
    while gap < bsp.nprocs:
        if bsp.pid % (2 * gap) == gap:
            bsp.send(bsp.pid - gap, data)
        bsp.sync()
        for _, _, other in bsp.messages():
            charge(bsp, 1e-8 * (len(other) + len(data)))
            data = np.concatenate([data, other])
        gap *= 2


def told(bsp, n):
    charge(bsp, 1e-6)
    x = np.zeros(n) if bsp.pid == 0 else None
    bsp.broadcast(x, stages=1)
    charge(bsp, 1e-8 * n)
    bsp.broadcast(x, stages=2)
    bsp.allreduce(np.zeros(n // 4))
    bsp.broadcast(x)


def branches(bsp, n):
    charge(bsp, 1e-8 * n / bsp.nprocs)
    bsp.alltoall([np.zeros(n // bsp.nprocs**2)] * bsp.nprocs)
    if bsp.nprocs >= 4:
        bsp.allgather(np.zeros(4))
    if n >= 512:
        bsp.send((bsp.pid + 1) % bsp.nprocs, np.zeros(n // bsp.nprocs))
        bsp.sync()
        list(bsp.messages())


def nested(bsp, n):
    charge(bsp, 1e-8 * n / bsp.nprocs)
    _nested(bsp, n // bsp.nprocs)


def _nested(group, block):
    if group.nprocs > 1:
        group.allgather(np.zeros(block))
        with group.split(group.pid * 2 // group.nprocs) as part:
            _nested(part, block)


def solver(bsp, n):
    charge(bsp, 1e-6)
    for _ in range(5):
        for other in (bsp.pid - 1, bsp.pid + 1):
            if 0 <= other < bsp.nprocs:
                bsp.send(other, np.zeros(1))
        bsp.sync()
        list(bsp.messages())
        charge(bsp, 1e-6 + 1e-8 * n / bsp.nprocs)
        bsp.allreduce(1.0)


def scanned(bsp, n):
    charge(bsp, 1e-8 * n)
    bsp.sync()
    if bsp.nprocs >= 4:
        bsp.scan(1.0)


def slight(bsp, n):
    """What it computes is at most 5e-5 of its time at the sizes that are learned from."""
    charge(bsp, 5e-13 * n * n)
    for _ in range(500):
        bsp.sync()


PROGRAMS = {
    each.__name__: each
    for each in (wavefront, merge, told, branches, nested, solver, scanned, slight)
}
SIZES, COUNTS, FAR = (128, 256, 512, 1024), (2, 4, 8), (8192, 32)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    made = {}

    def run(name, n, p):
        path = folder / f"{name}-{n}-{p}.bsp"
        if path not in made:
            bsplib.run(PROGRAMS[name], n, nprocs=p, backend="sim", machine=THERE, profile=path)
            made[path] = (read_trace(path).runs[0], {"n": float(n)}, ())
        return made[path]

    return run


@pytest.fixture(scope="module")
def model_of(recorded):
    """The model of a program; it is learned once."""

    @functools.cache
    def of(name):
        return learn([recorded(name, n, p) for n in SIZES for p in COUNTS])

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_supersteps_are_exact_h_is_in_its_band_and_so_is_the_total(name, recorded, model_of):
    model = model_of(name)
    n, p = FAR
    (true,) = observe([recorded(name, n, p)]).observations
    prediction = predict_run(model, p, {"n": n})
    for each in prediction.chains:
        steps, h = each.values["supersteps"], each.values["h"]
        assert steps.is_exact
        assert steps.value == true.of(each.model.chain).supersteps
        assert h.low * (1 - 1e-9) <= true.of(each.model.chain).h <= h.high * (1 + 1e-9)
    assert prediction.low_s <= true.elapsed_s <= prediction.high_s
    assert prediction.high_s <= 1.5 * prediction.low_s


@pytest.mark.slow
def test_the_stages_that_a_program_gives_are_not_taken_for_the_machines(model_of):
    """Two stages would be cheaper here, and the Machine would choose them."""
    model = model_of("told")
    one, two, *_ = model.observed.chains
    assert {one, two} <= model.observed.told
    first = next(each for each in model.chains if each.chain == one)
    assert first.at({"n": 2.0**16, "p": 64.0})["h"][:3] == (8.0 * 2**16 * 63,) * 3


@pytest.mark.lengthy
def test_a_collective_from_some_number_of_processes_on_keeps_its_known_form(recorded):
    """Two numbers of processes call it, in one superstep; 32 need another."""
    model = learn([recorded("scanned", n, p) for n in SIZES[:2] for p in COUNTS])
    (true,) = observe([recorded("scanned", 256, 32)]).observations
    for each in predict_run(model, 32, {"n": 256}).chains:
        for name in ("supersteps", "h"):
            assert each.values[name].value == getattr(true.of(each.model.chain), name)


def halves(bsp, n):
    charge(bsp, 1e-6)
    with bsp.split(bsp.pid % 2) as half:
        half.alltoall([np.zeros(n // bsp.nprocs // half.nprocs)] * half.nprocs)
        half.allreduce(1.0)


@pytest.mark.slow
def test_a_collective_of_sub_groups_keeps_its_known_form_and_two_values_no_narrow_band(tmp_path):
    """The sub-groups of 2, 4 and 8 processes have 1, 2 and 4: what an alltoall moves, in two."""

    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(halves, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    model = learn([run(n, p) for n in SIZES for p in COUNTS])
    (true,) = observe([run(8192, 32)]).observations
    exchange, combined = (
        next(each for each in model.chains if model.nodes[each.chain[-1]].name.endswith(name))
        for name in ("alltoall", "allreduce")
    )
    for name in ("supersteps", "h"):
        assert combined.at(true.values)[name].value == getattr(true.of(combined.chain), name)
    h = exchange.at(true.values)["h"]
    assert h.low <= true.of(exchange.chain).h <= h.high


@pytest.mark.lengthy
def test_supersteps_are_whole_also_where_their_law_is_a_root():
    found = Learned((Law("sqrt(n)", 3),), whole=True)
    assert found.at({"n": 144.0}) == (12.0, 12, 12, True)
    assert found.at({"n": 150.0}) == (12, 12, 13, False)


@pytest.mark.lengthy
def test_the_calls_of_a_collective_are_whole_also_where_their_law_is_a_root(tmp_path):
    def rounds(bsp, n):
        charge(bsp, 1e-6)
        for _ in range(math.isqrt(n)):
            bsp.allreduce(np.zeros(bsp.nprocs))

    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(rounds, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    model = learn([run(n, p) for n in (16, 36, 64, 144) for p in COUNTS])
    (true,) = observe([run(150, 4)]).observations
    for each in model.chains:
        for name in ("supersteps", "h"):
            value, wanted = each.at(true.values)[name], getattr(true.of(each.chain), name)
            assert (value.value, value.low) == (wanted, wanted)


@pytest.mark.lengthy
def test_a_collective_in_some_rounds_of_a_loop_keeps_its_known_form(tmp_path):
    """Runs with few rounds have none, and 32 processes need more supersteps for each."""

    def checked(bsp, n):
        charge(bsp, 1e-6)
        for _ in range(n // 32):
            bsp.allreduce(1.0)

    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(checked, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    model = learn([*(run(n, p) for n in (16, 24, 32, 48) for p in COUNTS), run(96, 32)])
    (true,) = observe([run(192, 32)]).observations
    for each in model.chains:
        for name in ("supersteps", "h"):
            wanted = getattr(true.of(each.chain), name)
            assert each.at(true.values)[name][:3] == (wanted, wanted, wanted)


def test_what_a_superstep_moves_counts_in_whole_supersteps(tmp_path):
    def rounds(bsp, n):
        charge(bsp, 1e-6)
        for _ in range(math.isqrt(n)):
            bsp.allgather(1.0)

    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(rounds, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    model = learn([run(n, p) for n in (16, 36, 64) for p in COUNTS])
    (true,) = observe([run(80, 4)]).observations
    h = model.chains[0].at(true.values)["h"]
    assert (h.value, h.is_exact) == (true.of(model.chains[0].chain).h, False)


@pytest.mark.lengthy
def test_a_centre_without_supersteps_takes_no_time(model_of):
    model = model_of("branches")
    there = predict_run(model, 2, {"n": 256})
    late = [each for each in there.chains if each.values["supersteps"].value == 0]
    assert any(not each.model.ends for each in late)
    assert all(each.seconds.total_s == 0 for each in late if not each.model.ends)


def from_eight_on(bsp, n):
    charge(bsp, 1e-8 * n)
    for pid in range(1, bsp.nprocs // 8 + 1):
        if bsp.pid == 0:
            bsp.send(pid, np.zeros(n))
    bsp.sync()


def test_what_one_number_of_processes_alone_has_may_grow_with_it(tmp_path):
    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(from_eight_on, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    model = learn([run(n, p) for n in SIZES[:1] for p in COUNTS])
    (true,) = observe([run(SIZES[0], 32)]).observations
    h = model.chains[0].at(true.values)["h"]
    assert (h.low, h.high) == (0.0, true.of(model.chains[0].chain).h)


@pytest.mark.lengthy
def test_a_time_is_known_where_laws_give_all_of_it_and_else_believed(tmp_path):
    def main(bsp, n, each):
        charge(bsp, each * n)
        bsp.allgather(np.zeros(n))

    def opening(each):
        runs = []
        for n in SIZES[:3]:
            path = tmp_path / f"{each}-{n}.bsp"
            bsplib.run(main, n, each, nprocs=2, backend="sim", machine=THERE, profile=path)
            runs.append((read_trace(path).runs[0], {"n": float(n)}, ()))
        return predict_run(learn(runs), 2, {"n": 4096}).opening

    assert [opening(each) for each in (0.0, 1e-8)] == ["Known", "Believed"]


@pytest.mark.lengthy
def test_a_point_at_which_a_law_has_no_value_is_refused_in_a_sentence(recorded):
    model = learn([recorded("scanned", n, p) for n in SIZES[:2] for p in COUNTS])
    first, *others = model.chains
    learned = {**first.learned, "h": Learned((Law("log2(n)", 2),))}
    odd = replace(model, chains=(replace(first, learned=learned), *others))
    with pytest.raises(bsplib.UsageError, match=r"^predict: a law or a formula .* at n = 0"):
        predict_run(odd, 2, {"n": 0})
    with pytest.raises(bsplib.UsageError, match=r"^predict: p is 0; it has to be a whole number"):
        predict_run(model, 0, {"n": 128})
    large = replace(model, measured={"n": (2.0**21, 2.0**22), "p": (2.0, 4.0)})
    with pytest.raises(bsplib.UsageError, match=r"n has no value; give one as in --at n=2\^23$"):
        predict_run(large, 2)


@pytest.mark.lengthy
def test_a_model_that_was_written_predicts_the_same(model_of, tmp_path):
    model, path = model_of("solver"), tmp_path / "model.json"
    write_model(model, path)
    one, other = (predict_run(each, 32, {"n": 4096}) for each in (model, read_model(path)))
    assert other.nodes == one.nodes
    assert (other.low_s, other.high_s) == (one.low_s, one.high_s)


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("nodes"),
        lambda found: found.update(version=9),
        lambda found: found.update(format="another"),
        lambda found: found["chains"][0].update(nodes=[99]),
        lambda found: found["chains"][0].update(nodes=[-1]),
        lambda found: found["nodes"][0].__setitem__(1, "evil"),
        lambda found: found["observations"][0]["values"].update(p="2"),
        lambda found: found["observations"][0]["values"].pop("p"),
        lambda found: found["observations"][0]["chains"].update({"0": [1, 2]}),
        lambda found: found["observations"][0]["chains"].update({"0": [math.inf] * 7}),
        lambda found: found["observations"][0]["chains"].update({"0": [10**400] * 7}),
        lambda found: found["observations"][0]["chains"].update({"99": [0] * 7}),
        lambda found: found.update(observations=[]),
        lambda found: found.update(meta=3),
    ],
)
def test_a_damaged_model_is_refused_in_one_sentence(model_of, tmp_path, change):
    found = json.loads(json.dumps(document(model_of("solver"))))  # of its own
    path = tmp_path / "model.json"
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(ModelError, match="is no model"):
        read_model(path)


@pytest.mark.slow
def test_the_run_that_is_named_narrows_the_band(recorded):
    runs = [recorded("wavefront", n, p) for n in SIZES for p in COUNTS]
    n, p = 2**17, 32
    before = predict_run(learn(runs), p, {"n": n})
    point = run_to_make(before)
    assert point is not None
    assert point != before.point
    more = [*runs, recorded("wavefront", int(point["n"]), int(point["p"]))]
    after = predict_run(learn(more), p, {"n": n})
    assert after.high_s / after.low_s < before.high_s / before.low_s


@pytest.mark.lengthy
def test_a_run_is_named_also_where_the_square_of_a_band_is_no_number(model_of):
    found = predict_run(model_of("solver"), 32, {"n": 8192})
    wide = tuple(replace(each, low_s=0.0, high_s=1e200) for each in found.chains)
    assert run_to_make(replace(found, chains=wide, high_s=1e200)) is not None


@pytest.mark.lengthy
def test_the_roll_off_is_where_more_processes_no_longer_help(model_of):
    found = scaling(predict_run(model_of("solver"), 32, {"n": 8192}))
    totals = {each.point["p"]: each.total.total_s for each in found.predictions}
    assert found.roll_off is None or totals[found.roll_off] == min(totals.values())


@pytest.mark.lengthy
def test_the_command_learns_from_traces_and_predicts_from_the_model(recorded, tmp_path):
    for n in SIZES:
        for p in COUNTS:
            recorded("solver", n, p)
    folder = next(iter(recorded.__closure__[1].cell_contents)).parent
    traces = sorted(str(path) for path in folder.glob("solver-*-[248].bsp"))
    model = str(tmp_path / "model.json")
    learnt = run_bsp("predict", *traces, "--model-out", model)
    assert learnt.exit_code == 0, learnt.output
    assert "n = 128, 256, 512, 1024; p = 2, 4, 8" in learnt.output
    done = run_bsp("predict", model, "--at", "n=8192,p=32")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Believed at n = 8192 on 32 processes of there: ")
    assert "most of it test_predict_programs.py line " in " ".join(done.output.split())


def measured(bsp, n):
    np.sort(np.arange(n)[::-1])
    bsp.allgather(np.zeros(n))


def little(folder, main, **how):
    runs = []
    for n in (64, 128, 256):
        for p in (1, 2):
            path = folder / f"{n}-{p}.bsp"
            bsplib.run(main, n, nprocs=p, profile=path, **how)
            runs.append((read_trace(path).runs[0], {"n": float(n)}, ()))
    return runs


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [{}, {"backend": "sim", "machine": THERE}])
def test_runs_with_measured_time_that_are_short_are_too_short_to_tell(tmp_path, monkeypatch, how):
    monkeypatch.setattr(ProgramModel, "least_s", 1e6)  # whatever this computer takes
    text = str(predict_run(learn(little(tmp_path, measured, **how)), 2, {"n": 1024}, THERE))
    assert text.startswith("Not known beyond the runs: ")
    assert "too short to tell: these runs take at most " in text


@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_what_communication_took_beyond_its_price_is_work_of_real_runs(tmp_path, backend):
    """What a process copies for itself is no h-relation; in virtual time nothing is beyond."""

    def main(bsp, n):
        charge(bsp, 1e-8 * n)
        bsp.sync()

    runs = little(tmp_path, main, backend="sim", machine=THERE)
    program = observe(runs)
    for each in program.observations:
        beyond = 1e-6 * each.values["n"]
        for chain, row in each.chains.items():
            each.chains[chain] = row._replace(comm=row.supersteps * (THERE.l + beyond))
    meta = {**learn(runs).meta, "backend": backend}
    model, work = learn_observed(program, len(runs), meta), 1e-8 * 256
    predicted = predict_run(model, 2, {"n": 256}, THERE)
    beyond = 1e-6 * 256 if backend == "shm" else 0.0
    assert predicted.total.comp_s == pytest.approx(work + beyond)
    if backend == "shm":  # another Machine file of the same computer prices no part twice
        here = replace(THERE, l=THERE.l / 2, host=meta["host"])
        predicted = predict_run(model, 2, {"n": 256}, here)
        assert predicted.total.total_s == pytest.approx(work + THERE.l + beyond)


PROGRAM = """
import sys, bsplib

def main(bsp, n):
    bsp.charge(1e-8 * n / bsp.nprocs)
    bsp.allgather(bytes(n // bsp.nprocs))

if __name__ == "__main__":
    bsplib.run(main, int(sys.argv[1]))
"""


@pytest.mark.slow
def test_the_command_makes_the_runs_that_it_learns_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    run = f"{sys.executable} -m bsplib run --backend sim --machine ideal:g=2e-9,l=2e-5 -n {{p}}"
    maker = ["--run", f"{run} --profile {{trace}} program.py {{n}}"]
    done = run_bsp("predict", *maker, "--budget", "5m", "--at", "n=4096,p=8")
    assert done.exit_code == 0, done.output
    first, *_ = done.output.splitlines()
    assert first == "running n = 16, p = 1"
    assert "Believed at n = 4096 on 8 processes of ideal" in done.output
    assert "3,584" in done.output  # bytes of the h-relation, of seven pieces
    assert len([*tmp_path.glob("run-*.bsp")]) >= 9
    done = run_bsp("predict", *maker, "--budget", "1m", "--at", "n=4096")
    assert "predict: --at needs the number of processes, as in --at n=2^20,p=64" in done.output


def hypercube(bsp, n):
    charge(bsp, 1e-8 * n / bsp.nprocs)
    stages = bsp.nprocs.bit_length() - 1
    for _ in range(stages * (stages + 1) // 2):
        bsp.send(bsp.pid ^ 1, np.zeros(n // bsp.nprocs))
        bsp.sync()


def two_branches(bsp, n):
    charge(bsp, 1e-6)
    bsp.sync()
    if n > 256:
        charge(bsp, 1e-8 * n)
    if bsp.nprocs > 2:
        bsp.sync()


CALLS = {
    "combined": lambda bsp, x: bsp.allreduce(x),
    "prefixed": lambda bsp, x: bsp.exscan(x),
    "reduced": lambda bsp, x: bsp.reduce(x),
    "reduced_to_last": lambda bsp, x: bsp.reduce(x, root=bsp.nprocs - 1),
    "spread": lambda bsp, x: bsp.broadcast(x),
    "spread_from_last": lambda bsp, x: bsp.broadcast(x, root=bsp.nprocs - 1),
}


def all_of_them(bsp, n):
    for call in CALLS.values():
        call(bsp, np.zeros(n))
        bsp.sync()  # it moves nothing, and so it tells where a call ends


@pytest.mark.parametrize(("p", "n"), [(2, 5), (3, 4), (7, 9), (8, 33), (12, 20), (12, 97), (32, 9)])
def test_what_collectives_cost_is_what_their_calls_cost(p, n, tmp_path):
    path, ratio = tmp_path / "run.bsp", 100.0
    machine = Machine("there", "made up", g=1e-9, l=ratio * 1e-9)
    run = record_run(path, all_of_them, n, nprocs=p, backend="sim", machine=machine)
    steps, h = superstep_numbers(run), np.maximum(*h_relation(run))
    moved = iter([float(h[steps == number].max()) for number in np.unique(steps)])
    for name in CALLS:
        wanted, count = COSTS[name](8 * n, 8, p, ratio)
        assert (name, sum(next(moved) for _ in range(count))) == (name, wanted)
        assert (name, next(moved)) == (name, 0)


@pytest.mark.lengthy
@pytest.mark.parametrize("program", [hypercube, two_branches])
def test_what_two_laws_give_is_between_them_and_what_no_large_run_has_is_nothing(program, tmp_path):
    def run(n, p):
        path = tmp_path / f"{n}-{p}.bsp"
        bsplib.run(program, n, nprocs=p, backend="sim", machine=THERE, profile=path)
        return read_trace(path).runs[0], {"n": float(n)}, ()

    prediction = predict_run(learn([run(n, p) for n in SIZES for p in COUNTS]), 32, {"n": 8192})
    (true,) = observe([run(8192, 32)]).observations
    for each in prediction.chains:
        for name in ("h", "comp"):
            value = each.values[name]
            wanted = getattr(true.of(each.model.chain), name)
            assert value.low * (1 - 1e-9) <= wanted <= value.high * (1 + 1e-9)
    assert prediction.low_s <= true.elapsed_s <= prediction.high_s
    assert prediction.high_s < 3 * prediction.low_s
