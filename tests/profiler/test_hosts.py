"""Processes are named with their hosts, where a run had several."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from bsplib.profiler import tables
from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.hosts import ProcessNames, host_names, hosts_of, where
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.profiler.run_title import title_lines
from bsplib.recording.records import Trace
from tests.made_runs import RunMaker, frame


def run(*hosts, nprocs=4, straggler=3, **meta):
    maker = RunMaker(nprocs)
    work = [4e-3 if pid == straggler else 1e-3 for pid in range(nprocs)]
    for _ in range(5):
        maker.step((frame("main", 1, 2),), work)
    return maker.run(host="driver", **({"hosts": list(hosts)} if hosts else {}), **meta)


BOUNDS = {"a": 0.0, "b": 1.25e-5}


@pytest.mark.parametrize(
    ("pids", "text"),
    [
        ([3], "process 3"),
        (range(4, 8), "processes 4 to 7"),
        ([0, 4, 8], "processes 0, 4, 8"),
        (range(0, 40, 4), "processes 0, 4, 8, 12, ..."),
    ],
)
def test_processes_of_one_host_are_named_shortly(pids, text):
    assert ProcessNames(run())(pids) == text


@pytest.mark.parametrize(
    ("pids", "text"),
    [
        ([5], "process 5 (c)"),
        ([2, 3], "processes 2 to 3 (b)"),
        ([0, 2, 4], "processes 0, 2, 4 (a, b, c)"),
        (range(8), "processes 0 to 7 (4 hosts)"),
    ],
)
def test_processes_of_several_hosts_are_named_with_them(pids, text):
    assert ProcessNames(run(*"aabbccdd", nprocs=8))(pids) == text


@pytest.mark.parametrize(
    "hosts", [None, "aabb", 7, ["a", "b"], ["a", "b", 3, "d"], ["a"] * 4, {"a": 1}]
)
def test_hosts_that_a_trace_cannot_mean_are_not_shown(hosts):
    strange = run()
    strange.meta["hosts"] = hosts
    assert hosts_of(strange) == ()
    assert where(strange) == ""
    assert host_names(strange) == "driver"


def test_names_of_hosts_are_made_visible():
    assert hosts_of(run("a\x1b[31m", "b", "b", "b"))[0] == "a\\x1b[31m"


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


def test_the_verdict_names_the_host_of_the_straggler():
    (sentence,) = Profile(Trace((run(*"aabb"),))).runs[0].verdict().sentences
    assert "are lost in main (bcast.py line 2), by process 3 (b)" in sentence.text


def test_a_host_with_braces_in_its_name_is_written_as_it_is():
    (sentence,) = Profile(Trace((run("a", "a", "b", "{who}"),))).runs[0].verdict().sentences
    assert "in main (bcast.py line 2), by process 3 ({who})" in sentence.text


def test_the_report_names_the_hosts():
    out = io.StringIO()
    profile = Profile(Trace((run(*"aabb", clock_bounds_s=BOUNDS),)))
    print_report(profile.runs, console=Console(file=out, width=100))
    text = " ".join(out.getvalue().split())
    assert "on 2 hosts (a, b) whose clocks agree within 12.5 µs" in text
    assert "process 3 (b)" in text
    (described,) = document(profile.runs)["runs"]
    assert described["host"] == "a, b"
    assert json.loads(json.dumps(described))["losses"][0]["who"] == [3]


def test_tables_and_heads_name_the_hosts():
    several = run(*"aabb")
    processes = tables.processes(build(several))
    assert processes["host"] == list("aabb") * (len(processes["host"]) // 4)
    assert len(processes["host"]) == len(processes["pid"])
    assert "host" not in tables.processes(build(run()))
    assert "host a, b" in title_lines(several)[1]


def test_a_comparison_says_that_the_hosts_are_others():
    assert differences(run(*"aabb"), run(*"aabc")) == ["host a, b, c instead of host a, b"]
    assert differences(run(*"aabb"), run()) == ["host driver instead of host a, b"]


@pytest.mark.parametrize(
    ("cores", "words"), [(2, "4 processes are more than the cores"), (4, "one host has too few")]
)
def test_waiting_for_a_core_of_several_hosts_is_not_blamed_on_too_few_cores(cores, words):
    made = run("a", "a", "b", "b", cores=cores)
    made.records["comp_cpu"] = 1000
    (sentence,) = book_graph(build(made)).verdict().sentences
    assert sentence.kind == "waiting for a core"
    assert words in sentence.text
