"""Predictions on the ideal Machine and on a cluster: what they need, and how they open."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bsplib
from bsplib.machine import load_machine
from bsplib.machine.template import template
from bsplib.profiler.models.replay import MODELS, replay
from bsplib.profiler.prices import choose_prices
from bsplib.profiler.timeline import Timeline
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp


def gather(bsp, n):
    bsp.charge(1e-9 * n / bsp.nprocs)
    bsp.gather(np.ones(n // bsp.nprocs))


def record(path, n, p, backend="sim", machine="ideal"):
    bsplib.run(gather, n, nprocs=p, backend=backend, machine=machine, profile=path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    paths = [record(folder / f"{n}-{p}.bsp", n, p) for n in (64, 256, 512) for p in (2, 4, 8)]
    found = folder / "model.json"
    assert run_bsp("predict", *paths, "--model-out", found).exit_code == 0
    return found


def predicted(model, machine, p=64):
    done = run_bsp("predict", model, "--at", f"n=2^20,p={p}", "--machine", machine)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.lengthy
def test_a_real_run_needs_no_speed_on_the_ideal_machine(tmp_path):
    path = record(tmp_path / "real.bsp", 64, 2, backend="shm", machine=None)
    (run,) = read_trace(path).runs
    prices = choose_prices(run, load_machine("ideal:g=1e-9,l=1e-5"))
    assert (prices.ratio, prices.as_recorded) == (1.0, True)
    done = run_bsp("predict", "--machine", "ideal:g=1e-9,l=1e-5", path)
    assert "assumed: a process computes as fast as on the computer that recorded it" in re.sub(
        r"\s+", " ", done.output
    )
    assert choose_prices(run, load_machine("ideal:g=1e-9,l=1e-5,speed=4x")).ratio == 0.25


@pytest.mark.lengthy
def test_a_prediction_opens_with_its_time_and_what_is_assumed(model):
    lines = predicted(model, "ideal:g=1e-9,l=1e-5").splitlines()
    assert lines[0].startswith("Believed at n = 2^20 on 64 processes of ideal: 8.28 ms, ")
    assert "assumed: g = 1e-09 s/byte, l = 1e-05 s" in lines
    inside = run_bsp("predict", model, "--at", "n=256,p=4", "--machine", "ideal:l=1e-5")
    assert "assumed: l = 1e-05 s" in inside.output.splitlines()
    free = predicted(model, "ideal")
    assert "assumed: communication takes no time on this Machine" in free


@pytest.mark.lengthy
def test_a_cluster_never_uses_the_cores_of_another_computer(model, tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(template(path.name))
    text = predicted(model, path)
    assert "share" not in text
    assert "probed" not in text
    assert "256 processes share 128 cores" in predicted(model, path, 256)


@pytest.mark.lengthy
def test_more_processes_than_were_probed_are_named(model, tmp_path):
    path = tmp_path / "laptop.toml"
    path.write_text(
        'version = 2\nname = "laptop"\nsource = "bsp machine probe"\n'
        'g_s_per_byte = 1e-9\nl_s = 1e-6\nspeed_flop_per_s = 1e9\nhost = "elsewhere"\ncores = 2\n'
        "[[measured]]\np = 4\nempty_s = 1e-6\n"
    )
    done = run_bsp(
        *("predict", model, "--at", "n=2^20,p=64"),
        *("--machine", path, "--speed", "1x"),
    )
    assert (
        "assumed: what a probe measured goes on to 64 processes: laptop was probed with at most 4 "
        "on 2 cores, and bsp machine new FILE.toml describes another computer"
    ) in " ".join(done.output.split())


@pytest.mark.parametrize("p", [4, 8, 16])
def test_a_virtual_run_on_a_cluster_is_replayed_to_the_nanosecond(tmp_path, p):
    machine = tmp_path / "cluster.toml"
    machine.write_text(
        template("c").replace("nodes = 8", "nodes = 2").replace("cores = 16 ", "cores = 4 ")
    )
    path = record(tmp_path / "trace.bsp", 512, p, machine=str(machine))
    (run,) = read_trace(path).runs
    took = int(run.records["end"].max()) / 1e9
    for given in (None, load_machine(str(machine))):
        prices = choose_prices(run, given)
        for model in ("BSP", "OBSP*"):
            assert model in MODELS
            total = replay(Timeline(run), model, prices).total_s
            assert total == pytest.approx(took, abs=3e-9)
