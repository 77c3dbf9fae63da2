"""Predictions of runs whose processes use more memory than those that were recorded."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bsplib.machine import Machine
from bsplib.machine.measured import Curve, Measured
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes, read_model, write_model
from bsplib.profiler.models.nodes.memory import (
    memory_bytes,
    memory_doubt,
    memory_in_runs,
    memory_use,
    run_with_memory,
)
from bsplib.profiler.models.nodes.opening import run_to_make
from tests.made_runs import RunMaker, frame

BEFORE, ELEMENT = 900, 2**-9
"""Pages that every run needs, and those of an element."""
PASSES = Curve((2**15, 2**23, 2**25), (2**15 * 1e-11, 2**23 * 1e-11, 2**25 * 4e-11))
"""As fast up to 8 MiB, and 4 times as slow for each byte of 32 MiB."""
PLAIN = Machine("here", "made up", 1e-10, 1e-6, relative_speed=1.0)
PROBED = replace(PLAIN, measured=(Measured(2, 1e-6, passes=PASSES),))


def run(n, p, pages=lambda n, p: BEFORE + ELEMENT * n / p, **meta):
    """Return a run that computes 1 us for each element of a process, and its variables."""
    maker = RunMaker(p)
    maker.step((frame("main", 1, 2),), 1e-6 * n / p)
    made = maker.run(**meta)
    made.records["comp_minor"] = np.round(pages(n, p))
    made.records["comm_minor"] = 0
    return made, {"n": float(n)}, ()


def model_of(sizes=(2**17, 2**18, 2**19), **more):
    return fit_nodes([run(n, p, **more) for n in sizes for p in (1, 2, 4)])


FAR = {"n": 2.0**23, "p": 2.0}


def test_memory_grows_at_most_like_the_computation():
    model = model_of()
    most = 4096 * ELEMENT * (2**19 - 2**17)  # beyond what the smallest run has
    assert memory_in_runs(model) == pytest.approx(most)
    assert memory_bytes(model, FAR) == pytest.approx(8 * most, rel=0.01)


def test_a_band_opens_by_as_much_as_passes_over_memory_become_slower():
    model = model_of()
    use = memory_use(model, FAR, PROBED)
    assert use.here == pytest.approx(8 * use.in_runs, rel=0.01)
    assert use.slowdown == pytest.approx(PASSES.at(use.here) / use.here / 1e-11, rel=1e-6)
    assert use.is_clear
    plain = predict_nodes(model, 2, {"n": FAR["n"]}, PLAIN)
    opened = predict_nodes(model, 2, {"n": FAR["n"]}, PROBED)
    assert opened.total.comp_s == pytest.approx(plain.total.comp_s)
    assert opened.low_s == pytest.approx(plain.low_s, rel=0.01)
    assert opened.high_s == pytest.approx(plain.high_s * use.slowdown, rel=0.01)


def test_inside_the_caches_nothing_is_said_of_memory():
    model = model_of()
    assert memory_use(model, {"n": 2.0**20, "p": 2.0}, PROBED).slowdown == 1
    assert memory_doubt(model, {"n": 2.0**20, "p": 2.0}, PROBED) == ""
    assert memory_doubt(model, FAR, PLAIN) == ""


@pytest.mark.lengthy
def test_the_run_that_would_settle_it_is_the_smallest_that_shows_as_much():
    point = {"n": 2.0**30, "p": 2.0}
    model = model_of()
    settling = run_with_memory(model, point, PROBED)
    smaller = {**settling, "n": settling["n"] / 2}
    wanted = 0.9 * memory_use(model, point, PROBED).slowdown
    assert memory_use(model, settling, PROBED).slowdown >= wanted
    assert memory_use(model, smaller, PROBED).slowdown < wanted
    assert f"(a run that would settle it: n = 2^{int(math.log2(settling['n']))}, p = 2)" in (
        memory_doubt(model, point, PROBED)
    )
    assert memory_doubt(model, point, PROBED) in str(
        predict_nodes(model, 2, {"n": point["n"]}, PROBED)
    ).replace("\n", " ")


@pytest.mark.lengthy
def test_after_the_run_that_settles_it_no_other_one_is_named_and_the_band_is_narrower():
    point = {"n": 2.0**30, "p": 2.0}
    before = model_of()
    settling = run_with_memory(before, point, PROBED)
    sizes = (2**17, 2**18, 2**19, int(settling["n"]))
    after = model_of(sizes)
    assert (
        memory_use(after, point, PROBED).slowdown
        < 1.25
        < memory_use(before, point, PROBED).slowdown
    )
    assert memory_doubt(after, point, PROBED) == ""


@pytest.mark.lengthy
def test_half_of_the_sizes_is_named_where_no_smaller_run_shows_as_much():
    assert run_with_memory(model_of(), FAR, PROBED) == {"n": 2.0**22, "p": 2.0}
    assert run_with_memory(model_of((2**17, 2**18, 2**22)), FAR, PROBED) is None


@pytest.mark.lengthy
@pytest.mark.parametrize("roots", [(0,), (-1, 0)])
def test_a_variable_that_is_never_above_0_is_no_size_of_the_run_to_make(roots):
    runs = [
        (made, {**values, "root": float(root)}, ())
        for made, values, _ in (run(n, p) for n in (2**17, 2**18, 2**19) for p in (1, 2, 4))
        for root in roots
    ]
    model, far = fit_nodes(runs), {"n": FAR["n"], "root": 1.0}
    with_memory = run_with_memory(model, {**far, "p": 2.0}, PROBED)
    to_make = run_to_make(predict_nodes(model, 2, far, PLAIN))
    for named in (with_memory, to_make or with_memory):
        assert 2**19 < named["n"] < FAR["n"]
        assert (named["root"], named["p"]) == (1, 2)


@pytest.mark.parametrize(
    "pages", [lambda n, p: BEFORE, lambda n, p: -1 + 0 * n], ids=["the same", "not counted"]
)
def test_where_memory_does_not_grow_or_is_not_known_no_band_opens(pages):
    model = model_of(pages=pages)
    assert model.memory is None
    assert memory_use(model, FAR, PROBED).slowdown == 1


@pytest.mark.lengthy
def test_a_model_keeps_its_memory_in_a_file(tmp_path):
    model = model_of()
    write_model(model, tmp_path / "model.json")
    assert read_model(tmp_path / "model.json").memory == model.memory


def test_the_bands_of_real_processes_widen_at_least_as_usual_ones_do():
    def width(backend):
        model = model_of(backend=backend)
        found = predict_nodes(model, 2, {"n": FAR["n"]}, PLAIN)
        return math.log(found.high_s / found.total.comp_s)

    assert width("sim") < 0.01
    distance = math.log(2**23 / 2**19) / math.log(2**19 / 2**17)
    assert width("shm") == pytest.approx(0.2 * distance, rel=0.01)
