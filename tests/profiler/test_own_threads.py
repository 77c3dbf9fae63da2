"""Waiting for threads of its own is computation of a process, and is told from 1% on."""

from __future__ import annotations

import io
import threading
import time

import pytest
from rich.console import Console

from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.profiler.system_time import own_threads_s, own_threads_sentence
from bsplib.recording.records import Trace
from bsplib.webui.services import describe_verdict
from tests.recordings import record_run

US = 1000


@pytest.fixture
def waited(script):
    """Return the profile of a run of 100 us with such metadata."""

    def waited(**meta):
        program = script(2)
        program.step("main", w=100 * US)
        (profile,) = Profile(Trace((program.run(meta={"backend": "shm"} | meta),))).runs
        return profile

    return waited


def test_one_percent_or_more_has_a_sentence_in_the_report_and_on_the_page(waited):
    profile = waited(own_threads_ns=[0, 50 * US])
    sentence = (
        "50.0 µs of 200 µs of 2 processes (25%) passed in waiting for own threads, which is "
        "computation."
    )
    console = Console(file=io.StringIO(), width=160)
    print_report([profile], console=console)
    assert sentence in " ".join(console.file.getvalue().split())
    assert describe_verdict(book_graph(profile.callgraph))["threads"] == sentence
    (run,) = document([profile])["runs"]
    assert run["own_threads_s"] == pytest.approx(50e-6)


@pytest.mark.parametrize(
    ("meta", "seconds"),
    [
        ({"own_threads_ns": [0, US]}, 1e-6),
        ({"own_threads_ns": [0, 0]}, 0.0),
        ({"own_threads_ns": "x"}, None),
        ({"own_threads_ns": [None, 50 * US]}, None),
        ({}, None),
    ],
)
def test_little_or_unknown_waiting_has_no_sentence(waited, meta, seconds):
    run = waited(**meta).run
    assert own_threads_sentence(run) == ""
    assert own_threads_s(run) == (None if seconds is None else pytest.approx(seconds))


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def lets_a_thread_compute(bsp):
    for _ in range(3):
        if bsp.pid == 1:
            thread = threading.Thread(target=spend, args=(0.03,))
            thread.start()
            thread.join()
        bsp.sync()


@pytest.mark.lengthy
def test_a_process_that_waits_for_its_own_threads_is_no_blocked_one(tmp_path):
    path = tmp_path / "run.bsp"
    run = record_run(path, lets_a_thread_compute, nprocs=2, backend="shm")
    at = run.records["pid"] == 1
    assert run.records["comp_cpu"][at].sum() >= 80_000_000
    assert run.records["comp_cpu"][~at].sum() < 80_000_000
    none, waited = run.meta["own_threads_ns"]
    assert none < 40_000_000 < waited
