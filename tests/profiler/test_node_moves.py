"""Predictions of supersteps that differ in more than their bytes: by index, new memory, first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bsplib
from bsplib.machine import Machine
from bsplib.machine.measured import Curve, Measured
from bsplib.profiler.callgraph import build
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes, read_model, write_model
from bsplib.profiler.models.nodes.moves import moves_of
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.prices import choose_prices
from bsplib.recording.records import GroupInfo
from bsplib.recording.trace import read_trace

BLOCKS = {
    name: Curve((0, 2**20), (2e-6, 1e-3))
    for name in ("exchange", "ping-pong", "all-to-all", "one-to-all", "all-to-one")
}
PLACED, FETCHED = Curve((0, 2**20), (0.0, 20e-3)), Curve((0, 2**20), (0.0, 30e-3))
COLD, FIRST = Curve((0, 2**20), (0.0, 5e-3)), Curve((0, 1, 2), (0.0, 1e-3, 4e-3))


def machine(**curves):
    measured = tuple(
        Measured(p, empty=1e-6, patterns=BLOCKS, **(curves if p > 1 else {})) for p in (1, 2, 4)
    )
    return Machine("probed", "made up", 1e-9, 1e-6, relative_speed=1.0, measured=measured)


def scattered(bsp, n):
    """Put and get elements of the next process by their indices, and whole blocks of it."""
    bsp.charge(1e-9 * n)
    own = bsp.zeros(n)
    other, every = np.full(n, (bsp.pid + 1) % bsp.nprocs), np.arange(n)
    for _ in range(3):
        bsp.put_at(other, every, np.ones(n), own)
        bsp.sync()
    for _ in range(4):
        _fetch(bsp, other, every, own)
    for _ in range(2):
        bsp.send(other[0], own)
        bsp.sync()


def _fetch(bsp, other, every, own):
    bsp.get_at(other, every, own)
    bsp.sync()


def recorded(program, sizes, folder):
    """Return runs of a program in virtual time, by size and number of processes."""
    found = {}
    for n in sizes:
        for p in (2, 4):
            path = folder / f"{n}-{p}.bsp"
            bsplib.run(program, n, nprocs=p, backend="sim", machine=machine(), profile=path)
            found[n, p] = read_trace(path).runs[0]
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return recorded(scattered, (256, 512, 1024, 8192), tmp_path_factory.mktemp("moves"))


def test_a_superstep_without_records_of_its_own_changes_nothing(runs):
    """A run that is killed inside a sub-group has no records of the superstep around it."""
    whole = runs[256, 4]
    cut = replace(whole, groups=(*whole.groups, GroupInfo(0, 10**6, 0, 0, range(2))))
    assert moves_of([build(cut)]) == moves_of([build(whole)])


@pytest.mark.parametrize(
    "curves",
    [
        {"placed": PLACED},
        {"fetched": FETCHED},
        {"cold": COLD},
        {"first": FIRST},
        {"placed": PLACED, "fetched": FETCHED, "cold": COLD, "first": FIRST},
    ],
    ids="-".join,
)
def test_a_prediction_prices_as_a_replay_does(runs, tmp_path, curves):
    chosen = machine(**curves)
    model = fit_nodes([(run, {"n": float(n)}, ()) for (n, _), run in runs.items() if n < 8192])
    write_model(model, tmp_path / "model.json")
    for p, each in ((2, model), (4, read_model(tmp_path / "model.json"))):
        replayed = predict(runs[8192, p], choose_prices(runs[8192, p], chosen), ["BSP"])
        predicted = predict_nodes(each, p, {"n": 8192.0}, chosen)
        assert predicted.total.total_s == pytest.approx(replayed.totals["BSP"].total_s, rel=0.01)


def farmed(bsp, n):
    """Send many small messages to the next process."""
    bsp.charge(1e-9 * n)
    for _ in range(n // bsp.nprocs):
        bsp.send((bsp.pid + 1) % bsp.nprocs, b"12345678")
    bsp.sync()


def test_many_small_messages_are_priced_by_their_calls_as_a_replay_does(tmp_path):
    found = recorded(farmed, (64, 128, 256, 2048), tmp_path)
    chosen = machine()
    chosen = replace(chosen, measured=tuple(replace(each, call=1e-5) for each in chosen.measured))
    model = fit_nodes([(run, {"n": float(n)}, ()) for (n, _), run in found.items() if n < 2048])
    write_model(model, tmp_path / "model.json")
    for p, each in ((2, model), (4, read_model(tmp_path / "model.json"))):
        replayed = predict(found[2048, p], choose_prices(found[2048, p], chosen), ["BSP"])
        predicted = predict_nodes(each, p, {"n": 2048}, chosen).total.total_s
        assert predicted > 1e-5 * (2048 / p - 1)
        assert predicted == pytest.approx(replayed.totals["BSP"].total_s, rel=1e-9)
