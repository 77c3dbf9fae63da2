"""bsp machine probe: what it communicates, what it fits, what it writes."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from rich.console import Console

import bsplib
from bsplib.machine import PATTERNS, Machine, load_machine
from bsplib.machine.measured import Measured
from bsplib.machine.probing import table
from bsplib.machine.probing import times as probe_times
from bsplib.machine.probing.probe import (
    BETWEEN,
    INSIDE,
    RELATIONS,
    Probed,
    counts_of,
    fit_line,
    measure_levels,
    probe,
    relations_of_levels,
)
from bsplib.machine.probing.times import (
    SIZES,
    ProbeTimes,
    communicate,
    message_bytes,
    receivers,
    spread_of,
    typical,
)
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp
from tests.recordings import record_run

SMALL = 840  # divided by 1, 2, 3, 6 and 7


def pattern_of(bsp, pattern):
    bsp.sync()
    source = np.repeat(np.arange(SMALL // 120, dtype=np.uint8), 120)
    communicate(bsp, pattern, source, SMALL)
    bsp.sync()
    return [(pid, payload) for pid, _, payload in bsp.messages()]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_a_pattern_is_the_h_relation_that_it_should_be(pattern, count, tmp_path):
    """Roda et al. 1999, equation 4 with the greater of in and out."""
    path = tmp_path / "pattern.bsp"
    mails = bsplib.run(pattern_of, pattern, nprocs=count, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    h = np.maximum(*h_relation(run))[run.records["superstep"] == 1]
    messages = 1 if pattern in ("exchange", "ping-pong") else count - 1
    assert h.max() == messages * message_bytes(pattern, SMALL, count)
    for pid, mail in enumerate(mails):
        senders = [other for other in range(count) if pid in receivers(pattern, other, count)]
        size = message_bytes(pattern, SMALL, count)
        assert [(source, len(payload)) for source, payload in mail] == [
            (source, size) for source in senders
        ]


def test_each_receiver_gets_something_else_only_where_it_is_personalised():
    def parts(pattern):
        mails = bsplib.run(pattern_of, pattern, nprocs=3, backend="sim")
        return [mail[0][1].tolist() for mail in mails[1:]]

    one, other = parts("one-to-all")
    assert one == other
    one, other = parts("personalised-one-to-all")
    assert one != other


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


def test_l_is_never_fitted_below_zero():
    """A published L below zero is of no use, and asks for another one at every use."""
    fit = fit_line(np.array([1000, 10_000, 100_000]), np.array([1e-8, 2e-7, 5e-6]))
    assert fit.l == 0
    assert 1e-11 < fit.g < 5e-11


def test_g_is_never_fitted_below_zero():
    fit = fit_line(np.array([10, 1000]), np.array([2e-6, 1e-6]))
    assert fit.g == 0
    assert 1e-6 < fit.l < 2e-6


@pytest.mark.parametrize(("count", "rounds"), [(1, 3), (2, 0)])
def test_nothing_is_measured_of_nothing(count, rounds):
    with pytest.raises(ValueError, match=f"{count} processes in {rounds} rounds"):
        probe(count, "m", rounds=rounds)


FEW = (64, 128, 2048, 4096)


@pytest.fixture
def few_sizes(monkeypatch):
    """Measure few and small messages, so that a probe takes a second."""
    monkeypatch.setattr(probe_times, "sizes_that_fit", lambda _: FEW)
    monkeypatch.setattr(probe_times, "_WORK_KEYS", 2**12)
    monkeypatch.setattr(probe_times, "_STARTS", 1)


@pytest.mark.lengthy
@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_probe_finds_every_figure(count, tmp_path, few_sizes):
    told = []
    probed = probe(count, "here", rounds=2, progress=told.append)
    machine = probed.machine
    assert told == [0.25, 0.5, 0.75, 1.0]  # two rounds of 1 process, and two of the others
    assert (machine.name, machine.p, machine.h) == ("here", count, "max")
    assert machine.source.startswith("measured by bsp machine probe on 20")
    assert f"{count} processes" in machine.source
    assert machine.speed > 1e6
    assert machine.host
    assert machine.cores > 0
    assert tuple(machine.patterns) == PATTERNS
    assert all(0 <= pattern.g < 1e-5 for pattern in machine.patterns.values())
    assert (machine.g, machine.l) == (probed.fits["all-to-all"].g, probed.fits["all-to-all"].l)
    alone, together = machine.measured
    assert (alone.p, together.p) == (1, count)
    assert not alone.patterns
    assert tuple(together.patterns) == PATTERNS
    assert together.patterns["exchange"].nbytes == FEW
    assert alone.slowdown == 1
    assert together.slowdown >= 1
    for entry in machine.measured:
        assert entry.empty > 0
        assert entry.start > entry.empty
        assert entry.spread >= 0
    path = tmp_path / "here.toml"
    path.write_text(machine.text())
    again = load_machine(str(path))
    assert again.speed == pytest.approx(machine.speed, rel=1e-3)
    assert again.patterns["exchange"].g == pytest.approx(machine.patterns["exchange"].g, rel=1e-3)
    assert again.measured[1].empty == pytest.approx(together.empty, rel=1e-3)


def own_pid(bsp, sizes):
    return os.getpid()


def test_a_computation_is_compared_with_that_of_one_process_alone(monkeypatch):
    monkeypatch.setattr(probe_times, "_WORK_KEYS", 2**12)
    times = bsplib.run(probe_times._work_s, nprocs=3)
    assert [alone > 0 for alone, _ in times] == [True, False, False]
    assert all(together > 0 for _, together in times)
    ((alone, together),) = bsplib.run(probe_times._work_s, nprocs=1)
    assert alone == together


@pytest.mark.lengthy
def test_each_round_is_made_by_new_processes(monkeypatch, few_sizes):
    """Where the system places their memory differs, and so do the caches."""
    monkeypatch.setattr(probe_times, "measure_round", own_pid)
    found = []
    monkeypatch.setattr(probe_times, "_add", lambda _, results: found.append(results))
    probe_times.measure_times(2, "shm", budget_s=100, most_rounds=3)
    assert len(found) == 3
    assert len({pid for pids in found for pid in pids}) == 6


@pytest.mark.slow
def test_a_probe_of_one_round_knows_no_spread(few_sizes, monkeypatch):
    monkeypatch.setattr("bsplib.machine.probing.probe.load_average", lambda: 0.0)
    probed = probe(2, "here", rounds=1)
    assert [entry.spread for entry in probed.machine.measured] == [None, None]
    assert not probed.doubt


@pytest.mark.slow
def test_a_probe_of_a_busy_computer_says_so(few_sizes, monkeypatch):
    monkeypatch.setattr("bsplib.machine.probing.probe.load_average", lambda: 99.25)
    probed = probe(2, "here", rounds=1)
    assert "load average 99.2 on" in probed.doubt
    assert "probe again when the computer is idle" in probed.doubt
    assert probed.machine.source.endswith("load average 99.2 before")


def test_which_numbers_of_processes_are_measured(monkeypatch):
    monkeypatch.setattr("bsplib.machine.probing.probe.backends.own_cores", lambda: 8)
    assert [counts_of(given) for given in (None, 2, 3)] == [[1, 2, 8, 16], [1, 2], [1, 2, 3]]
    monkeypatch.setattr("bsplib.machine.probing.probe.backends.own_cores", lambda: 2)
    assert counts_of(None) == [1, 2, 3, 4]


def times_of(rounds):
    """Return the times of rounds in which a pattern takes as long as said, and twice that."""
    count = len(rounds)
    patterns = [np.array([[each, 2 * each]]) for each in rounds]
    once = [1e9] * count, [1.0] * count
    return ProbeTimes(2, (64, 128), *once, list(rounds), [np.zeros(2)] * count, patterns)


def test_the_spread_compares_the_even_rounds_with_the_odd_ones():
    quartiles = 2.0 + (5.0 - 2.0) / 4, 3.0 + (4.0 - 3.0) / 4
    expected = quartiles[1] / quartiles[0] - 1
    assert spread_of(times_of([5.0, 4.0, 2.0, 3.0])) == pytest.approx(expected)
    assert spread_of(times_of([2.0, 2.0, 2.0])) == 0
    assert spread_of(times_of([2.0])) is None


def test_a_rare_fast_round_and_disturbed_ones_do_not_count():
    rounds = [5.0] * 20 + [1.0] + [50.0] * 4
    assert typical(rounds) == 5.0
    assert typical([[2.0, 7.0]] * 4).tolist() == [2.0, 7.0]


def test_a_computer_with_little_shared_memory_is_probed_with_less(monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(probe_times.shutil, "disk_usage", lambda _: usage._replace(free=64 * 2**20))
    assert probe_times.sizes_that_fit(4)[-1] == 2**22
    assert probe_times.sizes_that_fit(64)[-1] == 2**20
    assert max(SIZES) == 2**24


# -- several hosts --------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("hosts", "between", "inside"), [("aabb", 2, 1), ("abcd", 3, 0), ("aaab", 3, 2), ("abab", 2, 1)]
)
def test_the_levels_are_measured_with_the_relations_that_they_say(
    hosts, between, inside, tmp_path, monkeypatch
):
    monkeypatch.setattr("bsplib.machine.probing.probe.speed_of", lambda _: 1.0)
    monkeypatch.setattr("bsplib.machine.probing.probe._BATCH_S", 1e-4)
    path = tmp_path / "levels.bsp"
    run = record_run(path, measure_levels, hosts=list(hosts), nprocs=4, backend="sim")
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


@pytest.mark.lengthy
def test_a_probe_of_several_hosts_finds_two_levels(monkeypatch, tmp_path):
    monkeypatch.setattr("bsplib.machine.probing.probe.host_of", lambda bsp: f"host-{bsp.pid // 2}")
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
    monkeypatch.setattr("bsplib.machine.probing.probe.host_of", lambda bsp: f"host-{bsp.pid}")
    probed = probe(2, "hosts", rounds=1)
    assert list(probed.fits) == [BETWEEN]
    assert probed.machine.inside is None


def test_the_table_has_a_unit_for_each_time_and_marks_processes_that_share_cores():
    entries = (Measured(2, empty=25e-9, call=3e-6), Measured(4, empty=1.5e-3, call=2.0))
    machine = Machine("here", "made up", g=1e-9, l=1e-6, speed=1e9, cores=2, measured=entries)
    console = Console(width=200)
    with console.capture() as shown:
        console.print(table.table(Probed(machine, {})))
    rows = [line.split()[:3] for line in shown.get().splitlines()]
    assert ["2", "25ns", "3µs"] in rows
    assert ["4*", "1.5ms", "2s"] in rows
    assert "* processes share 2 cores." in shown.get()


@pytest.fixture
def quick(monkeypatch, few_sizes):
    monkeypatch.setattr(table, "ROUNDS", 1)


@pytest.mark.lengthy
def test_the_command_writes_a_machine_and_prints_its_figures(quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # no heading is folded where figures are long
    done = run_bsp("machine", "probe", "-n", "2", "--name", "My Box, 2")
    assert done.exit_code == 0, done.output
    assert "wrote my-box-2.toml: bsp predict --machine my-box-2.toml TRACE" in done.output
    words = ("My Box, 2: speed", "pattern", "misfit of g h + L", "exchange", "slower", "spread")
    for word in words:
        assert word in done.output
    machine = load_machine("my-box-2.toml")
    assert (machine.name, machine.p) == ("My Box, 2", 2)


@pytest.mark.slow
def test_the_command_writes_where_it_is_told(quick, tmp_path):
    path = tmp_path / "x.toml"
    done = run_bsp("machine", "probe", "-n", "2", "--out", path)
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
    done = run_bsp("machine", "probe", *said)
    assert done.exit_code != 0
    assert words.format(folder=folder) in done.output.replace("\n", " ")
