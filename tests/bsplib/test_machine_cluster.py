"""A cluster that a user describes: its template, its nodes and cores, and its speed."""

from __future__ import annotations

import pytest

import bsplib
from bsplib.machine import Level, Machine, load_machine
from bsplib.machine.measured import HRelation
from bsplib.machine.speed import time_scale
from bsplib.machine.template import template
from tests.commands import run_bsp


def cluster(nodes=2, cores=4, **more):
    return Machine(
        *("c", "made up", 4e-9, 3e-5), nodes=nodes, cores=cores, inside=Level(1e-9, 1e-6), **more
    )


@pytest.fixture
def write(tmp_path):
    def write_it(text, name="machine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_it


def test_the_template_is_a_machine_of_nodes_and_cores(tmp_path):
    path = tmp_path / "cluster.toml"
    done = run_bsp("machine", "new", path)
    assert done.exit_code == 0, done.output
    machine = load_machine(str(path))
    assert (machine.nodes, machine.cores, machine.all_cores) == (8, 16, 128)
    assert machine.inside is not None
    assert machine.inside.g < machine.g
    assert (machine.relative_speed, machine.speed, machine.host) == (1.0, None, "")
    assert "bsp predict --at n=2^30,p=128 --machine cluster.toml TRACE..." in path.read_text()


def test_the_speed_of_the_template_can_be_given_in_flops(write):
    text = template("c.toml").replace("relative_speed = 1.0\n", "")
    machine = load_machine(write(text.replace("# speed_flop_per_s", "speed_flop_per_s")))
    assert (machine.speed, machine.relative_speed) == (2e9, None)


def test_the_template_replaces_no_file(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text("mine")
    refused = run_bsp("machine", "new", path)
    assert refused.exit_code != 0
    assert path.read_text() == "mine"
    assert run_bsp("machine", "new", path, "--force").exit_code == 0
    assert load_machine(str(path)).nodes == 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["cluster"], "the name of a Machine's file ends in .toml"),
        (["c.toml", "--speed", "1x"], "No such option"),
        (["c.toml", "trace.bsp"], "unexpected extra argument"),
    ],
)
def test_the_template_takes_no_other_option(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_bsp("machine", "new", *options)
    assert done.exit_code != 0
    assert words in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cores = 16 ", "# cores", "it has nodes but no cores; give the cores of each node"),
        ("nodes = 8", "nodes = 0", "nodes is 0; it has to be a whole number"),
        (
            "relative_speed = 1.0",
            "relative_speed = 0",
            "relative_speed is 0.0; it has to be a number great",
        ),
        ("# speed_flop", "speed_flop", "it has both a speed and a relative_speed; give only one"),
    ],
)
def test_a_wrong_entry_of_a_cluster_is_one_sentence(write, old, new, words):
    text = template("c.toml")
    assert old in text
    with pytest.raises(bsplib.UsageError, match=words):
        load_machine(write(text.replace(old, new)))


def test_a_group_that_fits_on_a_node_pays_the_prices_inside():
    h = HRelation(1000)
    assert sum(cluster().parts_of(h, None, 4)) == pytest.approx(1000 * 1e-9 + 1e-6)
    assert sum(cluster().parts_of(h, None, 5)) == pytest.approx(1000 * 4e-9 + 3e-5)


def test_more_processes_than_all_cores_share_them():
    assert [cluster().slowdown(count) for count in (1, 8, 16)] == [1, 1, 2]
    assert time_scale(cluster(relative_speed=2.0), 16) == 1.0


def test_virtual_processors_pay_the_prices_of_their_node(run_times):
    def main(bsp):
        bsp.charge(0)  # from here on the clock moves by prices alone
        bsp.put((bsp.pid + 1) % bsp.nprocs, [bsp.pid], bsp.zeros(1), offset=0)
        before = bsp.time()
        bsp.sync()
        return bsp.time() - before

    assert run_times(main, 4) == pytest.approx(8e-9 + 1e-6)
    assert run_times(main, 8) == pytest.approx(32e-9 + 3e-5)


@pytest.fixture
def run_times(write):
    path = write(cluster().text())

    def times(main, nprocs):
        return bsplib.run(main, nprocs=nprocs, backend="sim", machine=path)[0]

    return times


def test_a_speed_in_multiples_of_the_recording_computer_follows_the_name():
    machine = load_machine("ibm-sp2-pvm:speed=0.5x")
    assert (machine.speed, machine.relative_speed) == (None, 0.5)
    assert load_machine("ideal:speed=1e9").relative_speed is None
    with pytest.raises(bsplib.UsageError, match="relative_speed is 0"):
        load_machine("ideal:speed=0x")
