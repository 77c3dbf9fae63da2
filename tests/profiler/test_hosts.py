"""Processes are named with their hosts, where a run had several."""

from __future__ import annotations

import json

import pytest

from bsplib.profiler import tables
from bsplib.profiler.callgraph import build
from bsplib.profiler.format import host_names, processes_named, title_lines, where
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.recording.records import Trace
from tests.commands import printed_by
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


def run(*hosts, nprocs=4, straggler=3, **meta):
    made = Script(nprocs)
    work = [4e-3 if pid == straggler else 1e-3 for pid in range(nprocs)]
    for _ in range(5):
        step(made, (frame("main", 1, 2),), work)
    return run_of(made, host="driver", **({"hosts": list(hosts)} if hosts else {}), **meta)


BOUNDS = {"a": 0.0, "b": 1.25e-5}


@pytest.mark.parametrize(
    ("pids", "text"),
    [
        ([5], "process 5 (c)"),
        ([2, 3], "processes 2 to 3 (b)"),
        ([0, 2, 4], "processes 0, 2, 4 (a, b, c)"),
        (range(10), "processes 0 to 9 (5 hosts)"),
    ],
)
def test_processes_of_several_hosts_are_named_with_them(pids, text):
    assert processes_named(run(*"aabbccddee", nprocs=10), pids) == text


def test_a_run_says_how_far_the_clocks_of_its_hosts_may_be_apart():
    assert where(run(*"aabb", clock_bounds_s=BOUNDS)) == (
        "on 2 hosts (a, b) whose clocks agree within 12.5 µs"
    )
    assert where(run(*"aabb")) == "on 2 hosts (a, b)"
    assert where(run(*"aabb", clock_bounds_s=[1])) == "on 2 hosts (a, b)"
    three = run(*"abcc", clock_bounds_s={"a": 0, "b": 1e-5, "c": 2e-5})
    assert where(three).endswith("agree within 30.0 µs")
    many = run(*(f"node{number}" for number in range(12)), nprocs=12)
    assert where(many) == "on 12 hosts"
    assert host_names(many) == "12 hosts"


def test_the_report_names_the_hosts():
    profile = Profile(Trace((run(*"aabb", clock_bounds_s=BOUNDS),)))
    text = " ".join(printed_by(print_report, profile.runs).split())
    assert "on 2 hosts (a, b) whose clocks agree within 12.5 µs" in text
    assert "process 3 (b)" in text
    (described,) = document(profile.runs)["runs"]
    assert described["host"] == "a, b"
    assert json.loads(json.dumps(described))["losses"][0]["pids"] == [3]


def test_tables_and_heads_name_the_hosts():
    several = run(*"aabb")
    processes = tables.processes(build(several))
    assert processes["host"] == list("aabb") * (len(processes["host"]) // 4)
    assert len(processes["host"]) == len(processes["pid"])
    assert "host" not in tables.processes(build(run()))
    assert "host a, b" in title_lines(several)[1]


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        (1, "4 processes are more than the cores, and others use them, too: no imbalance"),
        (2, "4 processes are more than the cores"),
        (4, "one host has too few"),
    ],
)
def test_waiting_for_a_core_of_several_hosts_is_not_blamed_on_too_few_cores(cores, words):
    made = run("a", "a", "b", "b", cores=cores)
    made.records["comp_cpu"] = 1000
    (sentence,) = book_graph(build(made)).verdict().sentences
    assert sentence.kind == "waiting for a core"
    assert words in sentence.text
