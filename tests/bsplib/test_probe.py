"""bsp probe: what it communicates, what it fits, what it writes."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib import cli
from bsplib.machine import PATTERNS, load_machine
from bsplib.recording.trace import read_trace
from bsplib.running import probe_table
from bsplib.running.probe import (
    _communicate,
    fit_line,
    message_bytes,
    probe,
    receivers,
    relation,
)
from bsplib.running.probe_levels import BETWEEN, INSIDE, measure_levels, relations_of_levels
from bsplib.running.probe_supersteps import RELATIONS
from profiler.costs import h_relation

SMALL = 840  # divided by 1, 2, 3, 6 and 7


def pattern_of(bsp, pattern):
    room = bsp.zeros(SMALL, np.uint8)
    bsp.sync()
    source = np.full(SMALL, bsp.pid + 1, np.uint8)
    _communicate(bsp, pattern, source, room, SMALL)
    bsp.sync()
    return room.copy()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_a_pattern_is_the_h_relation_that_it_should_be(pattern, count, tmp_path):
    """Roda et al. 1999, equation 4 with the greater of in and out."""
    path = tmp_path / "pattern.bsp"
    rooms = bsplib.run(pattern_of, pattern, nprocs=count, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    h = np.maximum(*h_relation(run))[run.records["superstep"] == 1]
    assert h.max() == relation(pattern, SMALL, count)
    for pid, room in enumerate(rooms):
        senders = [other for other in range(count) if pid in receivers(pattern, other, count)]
        size = message_bytes(pattern, SMALL, count)
        arrived = np.bincount(room, minlength=count + 1)[1:]
        assert arrived.tolist() == [size if other in senders else 0 for other in range(count)]


@pytest.mark.parametrize(
    ("pattern", "sends"),
    [
        ("exchange", [[1], [0], [3], [2], []]),
        ("ping-pong", [[1], [], [3], [], []]),
        ("one-to-all", [[1, 2, 3, 4], [], [], [], []]),
        ("personalised-one-to-all", [[1, 2, 3, 4], [], [], [], []]),
        ("all-to-one", [[], [0], [0], [0], [0]]),
        ("all-to-all", [[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3]]),
    ],
)
def test_who_sends_to_whom(pattern, sends):
    assert [receivers(pattern, pid, 5) for pid in range(5)] == sends


@pytest.mark.parametrize("count", [2, 4, 6, 8, 16, 24])
def test_messages_of_all_patterns_make_the_relation_that_equation_4_says(count):
    """Roda et al. 1999, equation 4 with @ = +, in messages of each pattern."""
    others = count - 1
    expected = dict(zip(PATTERNS, (2, 1, others, others, others, 2 * others), strict=True))
    for pattern, messages in expected.items():
        sent = [receivers(pattern, pid, count) for pid in range(count)]
        got = np.bincount(np.concatenate(sent).astype(int), minlength=count)
        assert max(len(to) + come for to, come in zip(sent, got, strict=True)) == messages


def test_a_line_through_exact_times_is_found():
    h = np.array(RELATIONS)
    fit = fit_line(h, 3e-10 * h + 2e-6)
    assert (fit.g, fit.l) == pytest.approx((3e-10, 2e-6))
    assert fit.misfit < 1e-6


def test_errors_count_in_proportion_to_the_time():
    """At 1 MiB a tenth is as bad as at 64 bytes: small sizes settle l, large ones g."""
    h = np.array(RELATIONS)
    seconds = (3e-10 * h + 2e-6) * np.where(np.arange(len(h)) % 2, 1.05, 0.95)
    fit = fit_line(h, seconds)
    assert (fit.g, fit.l) == pytest.approx((3e-10, 2e-6), rel=0.06)
    assert fit.misfit == pytest.approx(0.05, rel=0.5)


def test_g_is_never_fitted_below_zero():
    fit = fit_line(np.array([10, 1000]), np.array([2e-6, 1e-6]))
    assert fit.g == 0
    assert 1e-6 < fit.l < 2e-6


@pytest.mark.parametrize(("count", "rounds"), [(1, 3), (2, 0)])
def test_nothing_is_measured_of_nothing(count, rounds):
    with pytest.raises(ValueError, match=f"{count} processes in {rounds} rounds"):
        probe(count, "m", rounds=rounds)


@pytest.mark.parametrize("count", [2, 3])
def test_a_probe_finds_every_figure(count, tmp_path):
    told = []
    probed = probe(count, "here", rounds=2, progress=lambda: told.append(1))
    machine = probed.machine
    assert len(told) == 2
    assert (machine.name, machine.p, machine.h) == ("here", count, "max")
    assert machine.source.startswith("measured by bsp probe on 20")
    assert f"{count} processes" in machine.source
    assert machine.speed > 1e6
    assert tuple(machine.patterns) == PATTERNS
    assert all(0 <= pattern.g < 1e-5 for pattern in machine.patterns.values())
    assert (machine.g, machine.l) == (probed.fits["all-to-all"].g, probed.fits["all-to-all"].l)
    path = tmp_path / "here.toml"
    path.write_text(machine.text())
    again = load_machine(str(path))
    assert again.speed == pytest.approx(machine.speed, rel=1e-3)
    assert again.patterns["exchange"].g == pytest.approx(machine.patterns["exchange"].g, rel=1e-3)


# -- several hosts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "between", "inside"), [("aabb", 2, 1), ("abcd", 3, 0), ("aaab", 3, 2), ("abab", 2, 1)]
)
def test_the_levels_are_measured_with_the_relations_that_they_say(
    hosts, between, inside, tmp_path, monkeypatch
):
    monkeypatch.setattr("bsplib.running.probe_levels.speed_of", lambda _: 1.0)
    path = tmp_path / "levels.bsp"
    bsplib.run(measure_levels, hosts=list(hosts), nprocs=4, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    relations = relations_of_levels(hosts)
    expected = {level: set(sizes) - {0} for level, sizes in relations.items()}
    assert expected[BETWEEN] == {h // between * between for h in RELATIONS}
    assert expected[INSIDE] == ({h // inside * inside for h in RELATIONS} if inside else set())
    h = np.maximum(*h_relation(run))
    root = run.records["group"] == 0
    found = {BETWEEN: set(h[root].tolist()), INSIDE: set(h[~root].tolist())}
    for level in (BETWEEN, INSIDE):
        assert expected[level] <= found[level]
    number = np.unique(list(hosts), return_inverse=True)[1]
    large = run.traffic["bytes"] > 10_000  # of no collective
    apart = number[run.records["pid"][run.traffic["record"]]] != number[run.traffic["partner"]]
    assert (apart == root[run.traffic["record"]])[large].all()


def test_a_probe_of_several_hosts_finds_two_levels(monkeypatch, tmp_path):
    monkeypatch.setattr("bsplib.running.probe.host_of", lambda bsp: f"host-{bsp.pid // 2}")
    probed = probe(4, "hosts", rounds=1)
    machine = probed.machine
    assert list(probed.fits) == [BETWEEN, INSIDE]
    assert "4 processes on 2 hosts over" in machine.source
    assert not machine.patterns
    assert (machine.g, machine.l) == (probed.fits[BETWEEN].g, probed.fits[BETWEEN].l)
    assert machine.inside.g <= machine.g
    assert machine.inside.l >= 0
    path = tmp_path / "hosts.toml"
    path.write_text(machine.text())
    assert load_machine(str(path)).inside.l == pytest.approx(machine.inside.l, rel=1e-3)


def test_of_hosts_with_one_process_each_there_is_one_level(monkeypatch):
    monkeypatch.setattr("bsplib.running.probe.host_of", lambda bsp: f"host-{bsp.pid}")
    probed = probe(2, "hosts", rounds=1)
    assert list(probed.fits) == [BETWEEN]
    assert probed.machine.inside is None


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(probe_table, "ROUNDS", 1)
    monkeypatch.setattr(probe_table, "probe", lambda *args, **more: probe(*args, rounds=1, **more))


def test_the_command_writes_a_machine_and_prints_its_figures(quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.main, ["probe", "-n", "2", "--name", "My Box, 2"])
    assert done.exit_code == 0, done.output
    assert "wrote my-box-2.toml: bsp predict --machine my-box-2.toml TRACE" in done.output
    for word in ("My Box, 2: speed", "pattern", "misfit", *PATTERNS):
        assert word in done.output
    machine = load_machine("my-box-2.toml")
    assert (machine.name, machine.p) == ("My Box, 2", 2)


def test_the_command_writes_where_it_is_told(quick, tmp_path):
    path = tmp_path / "x.toml"
    done = CliRunner().invoke(cli.main, ["probe", "-n", "2", "--out", str(path)])
    assert done.exit_code == 0, done.output
    assert load_machine(str(path)).name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "1"], "1 is not in the range x>=2"),
        (["-n", "257"], "Error: nprocs is 257; it may be 1 to 256 on shm"),
        (["--backend", "sim"], "'sim' is not one of 'shm', 'mpi'"),
        (["--out", "{folder}/none/x.toml"], "Error: out: there is no folder {folder}/none"),
        (["--out", "{folder}"], "is a directory"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_measured(arguments, words, tmp_path):
    folder = str(tmp_path)
    said = [argument.format(folder=folder) for argument in arguments]
    done = CliRunner().invoke(cli.main, ["probe", *said])
    assert done.exit_code != 0
    assert words.format(folder=folder) in done.output.replace("\n", " ")
